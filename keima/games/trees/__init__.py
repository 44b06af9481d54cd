"""Games with their variations: the tree of a record, and the EDITING facet by which a board is set up and kept."""
