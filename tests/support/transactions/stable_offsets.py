"""Waits for the markers of transactions that their producers have ended.

A commit is answered once the coordinator has decided it; partitions get their markers afterwards. A
read_committed reader that stops at the last stable offset may read before they are there.
"""

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from peers.process import wait_until

WAIT_S = 120
NEW_PARTITION = {
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
}
"""Errors of a leader that has not learned of the topic: a topic's creation does not wait
for that.
"""


def wait_for_markers(
    bootstrap: str, topic: str, partitions: int, timeout_s: float = WAIT_S
) -> None:
    """Waits until the last stable offset of each partition is the end; fails if it does not get
    there.
    """
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    spec = OffsetSpec.latest()  # type: ignore[no-untyped-call]
    latest = {TopicPartition(topic, each): spec for each in range(partitions)}

    def ends(isolation: IsolationLevel) -> list[int]:
        asked = admin.list_offsets(latest, isolation_level=isolation, request_timeout=WAIT_S)
        return [each.result(WAIT_S).offset for each in asked.values()]

    def reached() -> bool:
        try:
            stable = ends(IsolationLevel.READ_COMMITTED)
            return stable == ends(IsolationLevel.READ_UNCOMMITTED)
        except KafkaException as refused:
            if refused.args[0].code() not in NEW_PARTITION:
                raise
            return False

    wait_until(reached, timeout_s, f"the markers of all transactions in {topic}")
