"""Runs artifacts: scripts of threads, calls, graphs, and the paired benchmark."""
