"""Rules of Go and chess, game records, coordinates and symmetries. Knows nothing of networks."""
