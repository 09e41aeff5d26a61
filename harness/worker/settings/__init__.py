"""JIT switches, numerics and environment variables: applied and read back."""
