"""Which branches that depend on the device have run: counted in every process of the gate, without installing anything."""
