"""The controller of the TorchScript upgrade gate. Nothing here imports torch; workers do."""

__version__ = "0.1.0"
DISTRIBUTION = "torchscript-gate"
"""What is installed, and the command that comes with it."""
PACKAGE = __name__
"""What is imported: ``harness`` in a checkout, ``torchscript_gate`` of a wheel, which ``hatch_build.py`` renames."""
