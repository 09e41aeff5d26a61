"""The verbs of the command line: what is parsed becomes one call of a command, its answer a text and a code."""
