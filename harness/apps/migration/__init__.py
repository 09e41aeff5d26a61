"""Which artifacts can leave TorchScript."""
