"""Classic members of Kafka Streams in a streams group, while an application migrates."""
