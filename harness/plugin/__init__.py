"""What the pytest plugin does once it is asked for; ``torchscript_gate_plugin`` is what pytest loads."""
