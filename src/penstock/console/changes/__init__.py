"""The changes that the console can make, one file per area."""
