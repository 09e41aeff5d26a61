"""One cell of a finished run, or one model, asked again: repeated, searched for its cause, searched for a cure."""
