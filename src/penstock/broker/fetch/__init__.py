"""What a fetch reads and what its response tells: sessions, limits, and the rules of each read."""
