"""What several responses say of topics."""

INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state"})

TOPIC_OPERATIONS = 0b1101_1111_1000
"""Every operation that can be allowed on a topic, as bits of Kafka's AclOperation codes."""
