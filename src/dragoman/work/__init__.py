"""Floor 3: who works. Meets the engine in the store and nowhere else."""
