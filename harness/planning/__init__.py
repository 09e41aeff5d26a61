"""Configuration, fixture declarations and command line to settings, sides and cells. Pure."""
