"""Known findings, waived for a while."""
