"""Any network file ↔ network: told apart by content, read safely, written whole or not at all."""
