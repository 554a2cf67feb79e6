"""Kafka's command line tools (`kafka-topics.sh` and so on), with current options and older ones."""
