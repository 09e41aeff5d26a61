"""Makes artifacts: exported, adopted, or saved again."""
