"""What all results together say: one judged answer with causes and waves, beside earlier ones."""
