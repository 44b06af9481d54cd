"""Lc0's network file as a protobuf schema: field numbers, names, enumerations.

Source: lc0 v0.33, `proto/net.proto` (facts of the format; the names are its names). Fields that neither lc0 nor keima
reads are not listed: they are skipped like any unknown field.
"""

from __future__ import annotations

from keima.systems.lc0.protobuf import Field, Schema

MAGIC = 0x1C0
MAX_BLOCKS = 1024  # most residual blocks or encoders a file may claim
MAX_DIMENSIONS = 16

INPUTS = {
    1: "INPUT_CLASSICAL_112_PLANE",
    2: "INPUT_112_WITH_CASTLING_PLANE",
    3: "INPUT_112_WITH_CANONICALIZATION",
    4: "INPUT_112_WITH_CANONICALIZATION_HECTOPLIES",
    132: "INPUT_112_WITH_CANONICALIZATION_HECTOPLIES_ARMAGEDDON",
    5: "INPUT_112_WITH_CANONICALIZATION_V2",
    133: "INPUT_112_WITH_CANONICALIZATION_V2_ARMAGEDDON",
}
OUTPUTS = {0: "OUTPUT_UNKNOWN", 1: "OUTPUT_CLASSICAL", 2: "OUTPUT_WDL"}
STRUCTURES = {
    0: "NETWORK_UNKNOWN",
    1: "NETWORK_CLASSICAL",
    2: "NETWORK_SE",
    3: "NETWORK_CLASSICAL_WITH_HEADFORMAT",
    4: "NETWORK_SE_WITH_HEADFORMAT",
    5: "NETWORK_ONNX",
    6: "NETWORK_ATTENTIONBODY_WITH_HEADFORMAT",
    7: "NETWORK_ATTENTIONBODY_WITH_MULTIHEADFORMAT",
    134: "NETWORK_AB_LEGACY_WITH_MULTIHEADFORMAT",
}
POLICIES = {0: "POLICY_UNKNOWN", 1: "POLICY_CLASSICAL", 2: "POLICY_CONVOLUTION", 3: "POLICY_ATTENTION"}
VALUES = {0: "VALUE_UNKNOWN", 1: "VALUE_CLASSICAL", 2: "VALUE_WDL", 3: "VALUE_PARAM"}
MOVES_LEFT = {0: "MOVES_LEFT_NONE", 1: "MOVES_LEFT_V1"}
DEFAULT_ACTIVATIONS = {0: "relu", 1: "mish"}
ACTIVATIONS = {
    0: "default",
    1: "mish",
    2: "relu",
    3: "none",
    4: "tanh",
    5: "sigmoid",
    6: "selu",
    7: "swish",
    8: "relu_2",
    9: "softmax",
}
EMBEDDINGS = {0: "INPUT_EMBEDDING_NONE", 1: "INPUT_EMBEDDING_PE_MAP", 2: "INPUT_EMBEDDING_PE_DENSE"}
ENCODINGS = {0: "unknown", 1: "linear16", 2: "float16", 3: "bfloat16", 4: "float32"}


def _layers(**numbers: int) -> dict[int, Field]:
    """Fields that hold one layer each."""
    return {number: Field(name, "message", LAYER) for name, number in numbers.items()}


def _message(name: str, schema: Schema, limit: int = 1) -> Field:
    return Field(name, "message", schema, limit)


LAYER: Schema = {
    1: Field("min_val", "float"),
    2: Field("max_val", "float"),
    3: Field("params", "bytes"),
    4: Field("encoding", "uint"),
    5: Field("dims", "uints", limit=MAX_DIMENSIONS),
}
CONV_BLOCK: Schema = _layers(weights=1, biases=2, bn_means=3, bn_stddivs=4, bn_gammas=5, bn_betas=6)
SE_UNIT: Schema = _layers(w1=1, b1=2, w2=3, b2=4)
RESIDUAL: Schema = {
    1: _message("conv1", CONV_BLOCK),
    2: _message("conv2", CONV_BLOCK),
    3: _message("se", SE_UNIT),
}
SMOLGEN: Schema = _layers(
    compress=1, dense1_w=2, dense1_b=3, ln1_gammas=4, ln1_betas=5, dense2_w=6, dense2_b=7, ln2_gammas=8, ln2_betas=9
)
MHA: Schema = {
    **_layers(q_w=1, q_b=2, k_w=3, k_b=4, v_w=5, v_b=6, dense_w=7, dense_b=8, rpe_q=10, rpe_k=11, rpe_v=12),
    9: _message("smolgen", SMOLGEN),
}
FFN: Schema = _layers(dense1_w=1, dense1_b=2, dense2_w=3, dense2_b=4)
ENCODER: Schema = {
    1: _message("mha", MHA),
    4: _message("ffn", FFN),
    **_layers(ln1_gammas=2, ln1_betas=3, ln2_gammas=5, ln2_betas=6),
}
POLICY_HEAD: Schema = {
    **_layers(ip_pol_w=1, ip_pol_b=2, ip2_pol_w=3, ip2_pol_b=4, ip3_pol_w=5, ip3_pol_b=6, ip4_pol_w=7),
    8: _message("pol_encoder", ENCODER, MAX_BLOCKS),
    9: Field("pol_headcount", "uint"),
    10: _message("policy1", CONV_BLOCK),
    11: _message("policy", CONV_BLOCK),
}
VALUE_HEAD: Schema = {
    **_layers(ip_val_w=1, ip_val_b=2, ip1_val_w=3, ip1_val_b=4, ip2_val_w=5, ip2_val_b=6),
    **_layers(ip_val_err_w=7, ip_val_err_b=8, ip_val_cat_w=9, ip_val_cat_b=10),
    11: _message("value", CONV_BLOCK),
}
POLICY_HEADS: Schema = {
    **_layers(ip_pol_w=1, ip_pol_b=2),
    3: _message("vanilla", POLICY_HEAD),
    4: _message("optimistic_st", POLICY_HEAD),
    5: _message("soft", POLICY_HEAD),
    6: _message("opponent", POLICY_HEAD),
}
VALUE_HEADS: Schema = {
    1: _message("winner", VALUE_HEAD),
    2: _message("q", VALUE_HEAD),
    3: _message("st", VALUE_HEAD),
}
WEIGHTS: Schema = {
    1: _message("input", CONV_BLOCK),
    2: _message("residual", RESIDUAL, MAX_BLOCKS),
    3: _message("policy", CONV_BLOCK),
    6: _message("value", CONV_BLOCK),
    11: _message("policy1", CONV_BLOCK),
    12: _message("moves_left", CONV_BLOCK),
    **_layers(ip_pol_w=4, ip_pol_b=5, ip1_val_w=7, ip1_val_b=8, ip2_val_w=9, ip2_val_b=10),
    **_layers(ip1_mov_w=13, ip1_mov_b=14, ip2_mov_w=15, ip2_mov_b=16),
    **_layers(ip2_pol_w=17, ip2_pol_b=18, ip3_pol_w=19, ip3_pol_b=20, ip4_pol_w=22),
    21: _message("pol_encoder", ENCODER, MAX_BLOCKS),
    24: Field("pol_headcount", "uint"),
    **_layers(ip_emb_w=25, ip_emb_b=26, ip_val_w=29, ip_val_b=30, ip_mov_w=31, ip_mov_b=32),
    27: _message("encoder", ENCODER, MAX_BLOCKS),
    28: Field("headcount", "uint"),
    **_layers(ip_mult_gate=33, ip_add_gate=34, smolgen_w=35, smolgen_b=36, ip_emb_preproc_w=37, ip_emb_preproc_b=38),
    **_layers(ip_emb_ln_gammas=39, ip_emb_ln_betas=40, ip_emb_ffn_ln_gammas=42, ip_emb_ffn_ln_betas=43),
    41: _message("ip_emb_ffn", FFN),
    44: _message("value_heads", VALUE_HEADS),
    45: _message("policy_heads", POLICY_HEADS),
}
NETWORK_FORMAT: Schema = {
    1: Field("input", "uint"),
    2: Field("output", "uint"),
    3: Field("network", "uint"),
    4: Field("policy", "uint"),
    5: Field("value", "uint"),
    6: Field("moves_left", "uint"),
    7: Field("default_activation", "uint"),
    8: Field("smolgen_activation", "uint"),
    9: Field("ffn_activation", "uint"),
    10: Field("input_embedding", "uint"),
}
NET: Schema = {
    1: Field("magic", "fixed"),
    2: Field("license", "text"),
    3: _message("min_version", {1: Field("major", "uint"), 2: Field("minor", "uint"), 3: Field("patch", "uint")}),
    4: _message("format", {1: Field("weights_encoding", "uint"), 2: _message("network_format", NETWORK_FORMAT)}),
    5: _message(
        "training_params",
        {
            1: Field("training_steps", "uint"),
            2: Field("learning_rate", "float"),
            3: Field("mse_loss", "float"),
            4: Field("policy_loss", "float"),
            5: Field("accuracy", "float"),
            6: Field("lc0_params", "text"),
        },
    ),
    10: _message("weights", WEIGHTS),
    11: Field("onnx_model", "bytes"),
}
