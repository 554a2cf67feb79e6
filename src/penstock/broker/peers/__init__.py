"""Communication between the brokers of one cluster."""
