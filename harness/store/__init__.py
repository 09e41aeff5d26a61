"""What is kept on disk: frozen types as JSON, the folder of a run, and stored results with the rule of their reuse."""
