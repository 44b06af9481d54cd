"""Lc0's network file as a protobuf schema: field numbers, names, enumerations.

Source: lc0 v0.33, `proto/net.proto` (facts of the format; the names are its names). Fields that neither lc0 nor keima
reads are not listed: they are skipped like any unknown field.
"""

from __future__ import annotations

from keima.systems.lc0.protobuf import Field, Schema

MAGIC = 0x1C0
_MAX_BLOCKS = 1024  # most residual blocks or encoders a file may claim

INPUTS = {
    1: "INPUT_CLASSICAL_112_PLANE",
    2: "INPUT_112_WITH_CASTLING_PLANE",
    3: "INPUT_112_WITH_CANONICALIZATION",
    4: "INPUT_112_WITH_CANONICALIZATION_HECTOPLIES",
    132: "INPUT_112_WITH_CANONICALIZATION_HECTOPLIES_ARMAGEDDON",
    5: "INPUT_112_WITH_CANONICALIZATION_V2",
    133: "INPUT_112_WITH_CANONICALIZATION_V2_ARMAGEDDON",
}
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
HEADS = ("", "classical", "convolution", "attention")
"""Policies by the format's number, as `Lc0Config` names them."""
VALUES = {0: "VALUE_UNKNOWN", 1: "VALUE_CLASSICAL", 2: "VALUE_WDL", 3: "VALUE_PARAM"}
MOVES_LEFT = {0: "MOVES_LEFT_NONE", 1: "MOVES_LEFT_V1"}
DEFAULT_ACTIVATIONS = {0: "relu", 1: "mish"}
ACTIVATIONS = dict(
    enumerate(("default", "mish", "relu", "none", "tanh", "sigmoid", "selu", "swish", "relu_2", "softmax"))
)
EMBEDDINGS = {0: "INPUT_EMBEDDING_NONE", 1: "INPUT_EMBEDDING_PE_MAP", 2: "INPUT_EMBEDDING_PE_DENSE"}
ENCODINGS = {0: "unknown", 1: "linear16", 2: "float16", 3: "bfloat16", 4: "float32"}
SUPPORTED = (
    "structures CLASSICAL, SE, ATTENTIONBODY and MULTIHEAD; policies CLASSICAL, CONVOLUTION and ATTENTION; "
    "values CLASSICAL and WDL; moves left NONE and V1"
)


def _fields(kind: str, schema: Schema | None = None, limit: int = 1, **numbers: int) -> dict[int, Field]:
    return {number: Field(name, kind, schema, limit) for name, number in numbers.items()}


def _messages(schema: Schema, limit: int = 1, **numbers: int) -> dict[int, Field]:
    return _fields("message", schema, limit, **numbers)


def _layers(**numbers: int) -> dict[int, Field]:
    return _fields("message", LAYER, **numbers)


LAYER: Schema = {
    **_fields("float", min_val=1, max_val=2),
    3: Field("params", "bytes"),
    4: Field("encoding", "uint"),
    5: Field("dims", "uints", limit=16),
}
CONV_BLOCK: Schema = _layers(weights=1, biases=2, bn_means=3, bn_stddivs=4, bn_gammas=5, bn_betas=6)
SE_UNIT: Schema = _layers(w1=1, b1=2, w2=3, b2=4)
RESIDUAL: Schema = {**_messages(CONV_BLOCK, conv1=1, conv2=2), **_messages(SE_UNIT, se=3)}
SMOLGEN: Schema = _layers(
    compress=1, dense1_w=2, dense1_b=3, ln1_gammas=4, ln1_betas=5, dense2_w=6, dense2_b=7, ln2_gammas=8, ln2_betas=9
)
MHA: Schema = {
    **_layers(q_w=1, q_b=2, k_w=3, k_b=4, v_w=5, v_b=6, dense_w=7, dense_b=8, rpe_q=10, rpe_k=11, rpe_v=12),
    **_messages(SMOLGEN, smolgen=9),
}
FFN: Schema = _layers(dense1_w=1, dense1_b=2, dense2_w=3, dense2_b=4)
ENCODER: Schema = {
    **_messages(MHA, mha=1),
    **_messages(FFN, ffn=4),
    **_layers(ln1_gammas=2, ln1_betas=3, ln2_gammas=5, ln2_betas=6),
}
POLICY_HEAD: Schema = {
    **_layers(ip_pol_w=1, ip_pol_b=2, ip2_pol_w=3, ip2_pol_b=4, ip3_pol_w=5, ip3_pol_b=6, ip4_pol_w=7),
    **_messages(ENCODER, _MAX_BLOCKS, pol_encoder=8),
    9: Field("pol_headcount", "uint"),
    **_messages(CONV_BLOCK, policy1=10, policy=11),
}
VALUE_HEAD: Schema = {
    **_layers(ip_val_w=1, ip_val_b=2, ip1_val_w=3, ip1_val_b=4, ip2_val_w=5, ip2_val_b=6),
    **_layers(ip_val_err_w=7, ip_val_err_b=8, ip_val_cat_w=9, ip_val_cat_b=10),
    **_messages(CONV_BLOCK, value=11),
}
POLICY_HEADS: Schema = {
    **_layers(ip_pol_w=1, ip_pol_b=2),
    **_messages(POLICY_HEAD, vanilla=3, optimistic_st=4, soft=5, opponent=6),
}
WEIGHTS: Schema = {
    **_messages(CONV_BLOCK, input=1, policy=3, value=6, policy1=11, moves_left=12),
    **_messages(RESIDUAL, _MAX_BLOCKS, residual=2),
    **_layers(ip_pol_w=4, ip_pol_b=5, ip1_val_w=7, ip1_val_b=8, ip2_val_w=9, ip2_val_b=10),
    **_layers(ip1_mov_w=13, ip1_mov_b=14, ip2_mov_w=15, ip2_mov_b=16),
    **_layers(ip2_pol_w=17, ip2_pol_b=18, ip3_pol_w=19, ip3_pol_b=20, ip4_pol_w=22),
    **_messages(ENCODER, _MAX_BLOCKS, pol_encoder=21, encoder=27),
    **_fields("uint", pol_headcount=24, headcount=28),
    **_layers(ip_emb_w=25, ip_emb_b=26, ip_val_w=29, ip_val_b=30, ip_mov_w=31, ip_mov_b=32),
    **_layers(ip_mult_gate=33, ip_add_gate=34, smolgen_w=35, smolgen_b=36, ip_emb_preproc_w=37, ip_emb_preproc_b=38),
    **_layers(ip_emb_ln_gammas=39, ip_emb_ln_betas=40, ip_emb_ffn_ln_gammas=42, ip_emb_ffn_ln_betas=43),
    **_messages(FFN, ip_emb_ffn=41),
    **_messages(_messages(VALUE_HEAD, winner=1, q=2, st=3), value_heads=44),
    **_messages(POLICY_HEADS, policy_heads=45),
}
NETWORK_FORMAT: Schema = {
    **_fields("uint", input=1, output=2, network=3, policy=4, value=5, moves_left=6),
    **_fields("uint", default_activation=7, smolgen_activation=8, ffn_activation=9, input_embedding=10),
}
TRAINING: Schema = {
    1: Field("training_steps", "uint"),
    **_fields("float", learning_rate=2, mse_loss=3, policy_loss=4, accuracy=5),
    6: Field("lc0_params", "text"),
}
NET: Schema = {
    1: Field("magic", "fixed"),
    2: Field("license", "text"),
    **_messages(_fields("uint", major=1, minor=2, patch=3), min_version=3),
    **_messages({1: Field("weights_encoding", "uint"), **_messages(NETWORK_FORMAT, network_format=2)}, format=4),
    **_messages(TRAINING, training_params=5),
    **_messages(WEIGHTS, weights=10),
    11: Field("onnx_model", "bytes"),
}
