"""Time indexes: which positions are due when. A cache of delay topics, which are the truth."""
