"""The `penstock` command: one file per noun."""
