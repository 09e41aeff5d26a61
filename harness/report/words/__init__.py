"""What every form of a report says; each form only lays it out."""
