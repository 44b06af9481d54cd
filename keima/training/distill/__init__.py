"""Learning from a teacher's answers."""
