"""The driver's library and ``nvidia-smi`` for a machine without a GPU; what they say is a scenario of the test's."""
