"""The small async client of brokers, command line and console."""
