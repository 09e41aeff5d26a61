"""Models of torchvision with drawn weights, for ``python -m tests.evidence tolerance``."""
