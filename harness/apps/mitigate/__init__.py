"""Which settings make a red cell pass."""
