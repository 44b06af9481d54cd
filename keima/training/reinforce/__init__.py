"""REINFORCE against a pool of past selves."""
