"""Delta debugging over an oracle that may be unreliable: culprits, reductions, rewrites, mitigations."""
