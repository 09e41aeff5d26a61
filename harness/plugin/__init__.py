"""The pytest plugin: its runs, items and fixture; pytest itself loads ``torchscript_gate_plugin`` only."""
