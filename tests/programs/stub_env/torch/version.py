"""Written anew in every stub environment."""

__version__ = "0.0.0"
ON_IMPORT = None
git_version = "stub"
cuda = None
