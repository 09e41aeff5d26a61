"""The static check: predicts from an archive alone which release will load it, and checks the prediction."""
