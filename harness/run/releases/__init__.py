"""Models in many environments: over releases of torch, or over what is installed beside it."""
