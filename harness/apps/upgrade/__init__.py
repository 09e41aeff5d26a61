"""Judge the upgrade: from a plan to a decision."""
