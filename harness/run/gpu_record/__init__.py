"""The GPU record: everything that the gate does on a device, in one go, within a time."""
