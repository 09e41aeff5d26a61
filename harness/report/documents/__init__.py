"""Results as documents: one function per kind of result."""
