"""The small async Kafka client that brokers, the command line and the console use."""
