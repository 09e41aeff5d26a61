"""From a red cell to its cause and what mitigates it."""
