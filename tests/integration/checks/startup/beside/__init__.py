"""Small exact models that differ in what stands beside their numbers."""
