"""Pipelined produce requests, the first of which is refused and sent again."""

import asyncio
from pathlib import Path

import pytest

from penstock.client.connection import Connection, connect
from penstock.errors import ErrorCode
from penstock.record.batch import batches
from penstock.record.record import records
from penstock.testing.logs import batch_of
from penstock.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from support.brokers.leading_broker import TOPIC, Leading, leading

NONE, TOO_FEW = ErrorCode.NONE, ErrorCode.NOT_ENOUGH_REPLICAS
OUT_OF_ORDER = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


async def produced(leader: Leading, connection: Connection, batch: bytearray, acks: int = 1) -> int:
    part = PartitionProduceData(index=0, records=memoryview(batch))
    topic = TopicProduceData(
        name=TOPIC, topic_id=leader.partition().topic_id, partition_data=[part]
    )
    request = ProduceRequest(acks=acks, timeout_ms=30_000, topic_data=[topic])
    response = await connection.send(request, ProduceResponse)
    return response.responses[0].partition_responses[0].error_code


def values(leader: Leading) -> list[bytes]:
    log = leader.partition().log
    found = log.read(0, 1 << 20, up_to=log.end_offset)
    assert found is not None
    data = found.read()
    return [
        record.value or b""
        for position, header in batches(data)
        for record in records(data[position:], header, 1 << 20)
    ]


@pytest.mark.row("A029")
@pytest.mark.parametrize(
    ("producer_id", "codes", "stored"),
    [
        (-1, [TOO_FEW, NONE, NONE, NONE], [b"before", b"b", b"a", b"b"]),
        (7, [TOO_FEW, OUT_OF_ORDER, NONE, NONE], [b"before", b"a", b"b"]),
    ],
    ids=["reordered and repeated", "idempotent"],
)
def test_a_retry_is_stored_after_its_successor_unless_sequences_are_checked(
    tmp_path: Path, producer_id: int, codes: list[int], stored: list[bytes]
) -> None:
    """The producer sends a and b, then both again: a because it was refused, b because its response
    was lost or, with sequences, because it was refused too.
    """

    def batch(sequence: int, value: bytes) -> bytearray:
        is_idempotent = producer_id >= 0
        return batch_of(value, producer_id=producer_id, sequence=sequence if is_idempotent else -1)

    async def main() -> None:
        settings = {"min.insync.replicas": "2"}
        async with leading(tmp_path, settings=settings) as leader, asyncio.timeout(20):
            connection = await connect(leader.address, client_id="test")
            partition = leader.partition()
            assert await produced(leader, connection, batch(0, b"before")) == NONE
            partition.lead(3, (0,), (0, 1), partition.partition_epoch + 1)
            found = [await produced(leader, connection, batch(1, b"a"), acks=-1)]
            leader.lead(0, 4)
            for sequence, value in ((2, b"b"), (1, b"a"), (2, b"b")):
                found.append(await produced(leader, connection, batch(sequence, value)))
            assert found == codes
            assert values(leader) == stored
            await connection.close()

    asyncio.run(main())
