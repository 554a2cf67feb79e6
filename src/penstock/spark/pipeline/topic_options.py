"""How pipelines and SQL read a topic, unless their options say otherwise."""

from typing import Final

READ_TOPIC: Final = {
    "startingOffsets": "earliest",
    # Rows of transactions that were aborted, and written again, would count twice.
    "kafka.isolation.level": "read_committed",
}
