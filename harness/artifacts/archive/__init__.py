"""Reads TorchScript archives without torch and without unpickling anything. Pure."""
