"""The log directories: Kafka's own files, read and written as Kafka does."""
