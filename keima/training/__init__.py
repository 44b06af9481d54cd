"""Training the family from game records: game stores, batches, losses, the loop and its recipes."""
