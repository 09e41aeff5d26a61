"""Searches that only ask: delta debugging, unreliable symptoms, attribution. Pure; the oracle is injected."""
