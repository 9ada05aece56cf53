"""Floor 3: drivers. What turns an outside program or a function into an agent."""
