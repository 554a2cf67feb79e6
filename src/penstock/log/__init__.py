"""The log directories: Apache Kafka's on-disk format, and what keeps it whole."""
