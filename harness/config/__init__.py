"""What may be written in ``[tool.compat]``, in a policy and in ``-k``; every mistake is named by its key. Pure."""
