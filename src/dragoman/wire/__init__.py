"""Floor 1: how values are spelled for other programs. Pure; knows the model and nothing else of ours."""
