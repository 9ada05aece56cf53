"""Floor 3: who answers. A local Peer over the store; never runs an agent itself."""
