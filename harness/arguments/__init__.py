"""What may be typed: parsers of the command line, and nothing else; one module per kind of verb."""
