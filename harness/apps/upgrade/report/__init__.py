"""The report of a run, made of what its stages found: its parts, its notes, its timelines and its trace."""
