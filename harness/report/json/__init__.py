"""Reports as JSON, lossless and versioned."""
