"""How a server starts: server groups, scenarios, what failed, and which part of it is to blame."""
