"""A fleet: a whole store of artifacts, planned, run in shards, merged into one answer and an upgrade plan."""
