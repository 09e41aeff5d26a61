"""Frozen types; every other layer speaks in them. No behaviour beyond derived properties."""
