"""What every format of a report says; each format only lays it out."""
