"""Whether this machine is fit for a run."""
