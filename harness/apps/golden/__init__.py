"""Golden records: proposed, reviewed, accepted, used in place of the old release."""
