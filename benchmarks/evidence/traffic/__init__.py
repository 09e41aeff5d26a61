"""Models that fail only after more calls than a warm-up makes, for ``python -m benchmarks.evidence bringing-up``."""
