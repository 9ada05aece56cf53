"""Floor 2: the one way out. Whom this node may reach, at which address, and with which credentials."""
