"""The paired benchmark: processes of both releases alive at once, rounds, statistics, and findings."""
