"""The Kafka protocol without I/O: messages, their codecs, headers and frames."""
