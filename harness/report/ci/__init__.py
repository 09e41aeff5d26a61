"""Reports in the formats of CI systems."""
