"""Runs a plan on what a team has already: batch jobs of Slurm, Kubernetes and GitHub, and a Ray cluster."""
