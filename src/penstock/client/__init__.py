"""The small async client that brokers, command line and console use."""
