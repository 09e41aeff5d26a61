"""What reading an archive tells: which release will load it, and whether that came true."""
