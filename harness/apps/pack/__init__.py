"""Golden bundles, for another team to judge by."""
