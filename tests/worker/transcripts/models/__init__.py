"""Small exact models for the transcripts: their outputs are the same on every machine."""
