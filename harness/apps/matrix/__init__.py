"""Every release's artifacts in every other release."""
