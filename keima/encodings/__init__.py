"""Position → input planes, and policy index ↔ move: one file per system."""
