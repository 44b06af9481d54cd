"""The family's architectures as plain PyTorch modules: one file per system, read from top to bottom."""
