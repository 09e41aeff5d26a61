"""What is kept on disk: frozen types as JSON, the folder of a run, and stored results: ``results.py`` decides on their reuse."""
