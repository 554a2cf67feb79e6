"""The blocking Kafka client of Spark's driver and tasks: settings, connections, leaders."""
