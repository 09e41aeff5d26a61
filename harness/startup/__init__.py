"""How a server comes up: server groups, scenarios, what failed, and which part of it is to blame."""
