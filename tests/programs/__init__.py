"""Programs that misbehave, each in one way, and what tests need to start them."""
