"""What people type: each folder has a command, what it runs, and what its result is."""
