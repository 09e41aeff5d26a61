"""Runs artifacts: scripts of threads, calls, CUDA graphs, and the paired benchmark."""
