"""Each measures one thing about a model and returns findings; none has a verdict."""
