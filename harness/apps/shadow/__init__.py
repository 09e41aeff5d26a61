"""A team's own server in both releases, under its own requests."""
