"""What operators need of their inputs, followed through a graph."""
