"""A program reduced to the few nodes that show a symptom by themselves."""
