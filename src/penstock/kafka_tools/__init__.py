"""Commands of Kafka's names (`kafka-topics.sh` and so on), with today's options and older ones."""
