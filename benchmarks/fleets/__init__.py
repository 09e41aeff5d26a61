"""What the benchmark of a fleet is made of: a store that a script writes, and torch alone as the yardstick."""
