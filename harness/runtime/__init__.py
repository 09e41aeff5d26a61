"""Processes, files, locks and clocks: everything with an effect on the machine, and nothing else."""
