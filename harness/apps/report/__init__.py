"""A finished run: its folder, its report, shown again."""
