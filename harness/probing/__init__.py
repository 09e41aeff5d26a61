"""One request becomes one result: worker processes, zygotes, their events, and the folder of each probe."""
