"""Time indexes: which positions are due when. A cache, rebuilt from the delay topics if lost."""
