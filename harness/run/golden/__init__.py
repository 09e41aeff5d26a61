"""Golden records of a project: proposed from a run, reviewed, decided about, and used in place of the old release."""
