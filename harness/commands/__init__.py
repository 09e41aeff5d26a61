"""One function per command; everything the command line can do can be done from Python through these."""
