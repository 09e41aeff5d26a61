"""The way out of TorchScript: torch.export, .pt2 files and AOTInductor."""
