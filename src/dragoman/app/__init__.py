"""Floor 4: the only place where the towers meet. Configuration, the node, the command line."""
