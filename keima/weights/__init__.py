"""Published network file ↔ network: one file per format, reading and writing."""
