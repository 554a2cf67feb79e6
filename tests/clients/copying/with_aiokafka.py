"""Copies with aiokafka; see `job`.

It commits offsets for the group, not for a member, so the broker cannot refuse a member that was
replaced. Its transaction is therefore finished before it gives up partitions.
"""

import asyncio
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener, TopicPartition

from clients.copying.job import (
    HEARTBEAT_MS,
    RECORDS,
    SESSION_MS,
    Batch,
    Ending,
    Job,
    copied,
    job,
)


class Between(ConsumerRebalanceListener):  # type: ignore[misc]  # it has no types
    """Lets the group rebalance only between two transactions."""

    def __init__(self, transaction: asyncio.Lock) -> None:
        self._transaction = transaction

    async def on_partitions_revoked(self, revoked: Any) -> None:  # noqa: ARG002
        async with self._transaction:
            pass

    async def on_partitions_assigned(self, assigned: Any) -> None: ...


async def copy(
    work: Job, messages: list[Any], consumer: AIOKafkaConsumer, producer: AIOKafkaProducer
) -> None:
    batch = Batch(*((message.partition, message.offset) for message in messages))
    await producer.begin_transaction()
    for message in messages:
        value = copied(message.value)
        await producer.send(work.target, value, partition=message.partition)
    positions = {TopicPartition(work.source, at): end for at, end in batch.nexts.items()}
    await producer.send_offsets_to_transaction(positions, work.group)
    if not work.aborts():
        await producer.commit_transaction()
        return
    await producer.flush()
    await producer.abort_transaction()
    for at, start in batch.starts.items():
        consumer.seek(TopicPartition(work.source, at), start)


async def main() -> None:
    work, ending, transaction = job(), Ending(), asyncio.Lock()
    producer = AIOKafkaProducer(
        bootstrap_servers=work.bootstrap, transactional_id=work.transactional_id
    )
    consumer = AIOKafkaConsumer(
        bootstrap_servers=work.bootstrap,
        group_id=work.group,
        session_timeout_ms=SESSION_MS,
        heartbeat_interval_ms=HEARTBEAT_MS,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        isolation_level="read_committed",
        fetch_max_wait_ms=100,
    )
    consumer.subscribe([work.source], listener=Between(transaction))
    async with producer, consumer:
        while not ending:
            # Not under the lock: during a rebalance this call waits for the new assignment.
            polled = await consumer.getmany(timeout_ms=100, max_records=RECORDS)
            if polled:
                messages = [one for some in polled.values() for one in some]
                async with transaction:
                    await copy(work, messages, consumer, producer)


if __name__ == "__main__":
    asyncio.run(main())
