"""What TorchScript is left for: torch.export, its .pt2 files, and packages of AOTInductor."""
