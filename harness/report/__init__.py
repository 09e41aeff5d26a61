"""A finished run in every form that people and machines read. Pure."""
