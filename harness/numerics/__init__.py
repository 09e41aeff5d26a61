"""Pure numerics over the wire: decode, walk, measure. NumPy only; nothing here knows what is acceptable."""
