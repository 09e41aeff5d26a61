"""JIT switches, numerics, pools and environment variables: what they are, what they mitigate, how they are written."""
