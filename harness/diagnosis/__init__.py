"""From a red cell to its cause and its cure."""
