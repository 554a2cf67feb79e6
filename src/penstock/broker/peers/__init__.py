"""What brokers of one cluster say to each other."""
