"""Golden records in git: kept, verified on every read, reviewed, accepted or rejected with a reason."""
