"""The blocking client of Spark's tasks and driver: settings, connections, leaders."""
