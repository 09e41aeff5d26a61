"""Reads artifacts without torch: bytes in, facts out. Nothing is unpickled, imported, extracted or run here."""
