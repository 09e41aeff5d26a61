"""How a server runs: JIT switches, numerics and pools, and the scenarios in which it starts."""
