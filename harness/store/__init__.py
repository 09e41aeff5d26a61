"""What is kept on disk: frozen types as JSON, the folder of a run, and what searches explained."""
