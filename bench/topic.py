"""Topics for measurements, made and deleted through librdkafka's admin client."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import OffsetSpec
from confluent_kafka.cimpl import NewTopic

from peers.process import wait_until


def admin_client(port: int) -> AdminClient:
    """Quiet: what fails is raised, and at the end a broker stops before its client does."""
    return AdminClient({"bootstrap.servers": f"127.0.0.1:{port}", "log_level": 0})


@contextmanager
def topic(
    admin: AdminClient, name: str, partitions: int = 1, config: Mapping[str, str] | None = None
) -> Iterator[str]:
    """A topic whose every partition is served, deleted at the end."""
    new = NewTopic(name, partitions, replication_factor=1, config=dict(config or {}))
    admin.create_topics([new])[name].result(60)
    latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # the library types some of it
    ends = {TopicPartition(name, each): latest for each in range(partitions)}

    def served() -> bool:
        # A leader that Metadata names may not yet know that it leads.
        try:
            for answer in admin.list_offsets(ends).values():
                answer.result(10)
        except KafkaException:
            return False
        return True

    wait_until(served, 60, f"leaders of {name}")
    try:
        yield name
    finally:
        admin.delete_topics([name])[name].result(60)
