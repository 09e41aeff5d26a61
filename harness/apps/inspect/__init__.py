"""Files, read without running them."""
