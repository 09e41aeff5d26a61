"""Search algorithms over an oracle that may be unreliable: budgets, delta debugging, minimal sets. Pure."""
