"""What a shell needs to complete a command line."""
