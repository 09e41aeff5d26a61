"""Clocks, files, threads, memory, cores and GPUs of this machine, and progress for a person who waits."""
