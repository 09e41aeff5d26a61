"""The preflight: is this machine fit for a run, and what happened to it during one."""
