"""What a running server does that hangs now."""
