"""What a cluster needs, and what is wrong with it: decided here, for commands and pages alike."""
