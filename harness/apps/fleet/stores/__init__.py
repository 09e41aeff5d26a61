"""What lies in a store: folders, object stores, Triton repositories and TorchServe archives, read without torch."""
