"""What several handlers share when they turn values into messages."""
