"""JIT switches, numerics, pools and environment variables: what they are, what they cure, how they are written."""
