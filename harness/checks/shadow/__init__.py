"""A team's own server: started, asked and stopped, and what its answers differ in."""
