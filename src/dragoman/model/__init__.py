"""Floor 0: the nouns, the events, the tables and the seams. Imports nothing of ours."""
