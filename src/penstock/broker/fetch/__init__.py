"""What a fetch reads and what its response contains: sessions, limits, the rules of each read."""
