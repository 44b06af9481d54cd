"""The `keima` command: one verb a file, thin: parse, call, print."""
