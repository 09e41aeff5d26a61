"""The controller of the TorchScript upgrade gate. Nothing here imports torch; workers do."""

__version__ = "0.1.0"
