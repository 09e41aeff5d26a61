"""Models of torchvision with drawn weights, for ``python -m benchmarks.evidence tolerance``."""
