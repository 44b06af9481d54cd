"""The verbs that make games and networks: data, train, study, compress."""
