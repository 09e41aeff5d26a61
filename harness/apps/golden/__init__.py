"""Golden records in git: kept, verified on every read, reviewed, accepted with a reason."""
