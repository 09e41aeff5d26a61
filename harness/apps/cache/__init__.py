"""What the gate keeps for this user: how much it takes, and its removal."""
