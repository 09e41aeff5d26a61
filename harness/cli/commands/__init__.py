"""One module per command: its help, its options, its call and its exit code; ``parser.py`` names them."""
