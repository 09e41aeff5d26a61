"""Settings under which a red cell is well again, and what each of them costs."""
