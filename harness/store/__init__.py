"""What is kept on disk: frozen types as JSON, the folder of a run, and results; ``results.py`` says what is reused."""
