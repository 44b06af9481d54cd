"""What a system is, and one folder for each member of the family: inputs, network, file, loss, preset."""
