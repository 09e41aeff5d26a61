"""Which other process of the machine holds up a process, from a time series over all of them."""
