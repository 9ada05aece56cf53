"""Floor 1, pure: what may happen. No await, no clock, no random, no environment."""
