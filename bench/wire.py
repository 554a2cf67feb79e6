"""Figures of the protocol layer beside their budgets: python -m bench wire"""

import subprocess
import sys
from collections.abc import Callable

from bench.timing import best_s

from penstock.record.build import build_batch, numbered
from penstock.types import Uuid
from penstock.wire.codec import decoder, encode, encoder
from penstock.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from penstock.wire.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from penstock.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from penstock.wire.schema import Message

NOW_MS = 1_700_000_000_000
FRESH_IMPORTS = 5
IMPORT = """
import time
began = time.perf_counter()
import penstock.wire.codec, penstock.wire.frame
print(time.perf_counter() - began)
"""


class SegmentRegion:
    """Records that stay in their file, as in a fetch response."""

    def __len__(self) -> int:
        return 65_536


def served(request: Message, response: Message, version: int) -> Callable[[], object]:
    """A broker's codec work for one request: decodes it and encodes its response."""
    frame = memoryview(encode(request, version))
    decode, answer = decoder(type(request), version), encoder(type(response), version)

    def serve() -> None:
        decode(frame, 0)
        answer(response, bytearray())

    return serve


def produce_served() -> Callable[[], object]:
    batch = build_batch(numbered([(None, b"v" * 100)], NOW_MS))
    sent = PartitionProduceData(index=0, records=batch)
    taken = PartitionProduceResponse(index=0, base_offset=42, log_start_offset=0)
    return served(
        ProduceRequest(
            acks=-1,
            timeout_ms=30_000,
            topic_data=[TopicProduceData(name="events", partition_data=[sent])],
        ),
        ProduceResponse(
            responses=[TopicProduceResponse(name="events", partition_responses=[taken])]
        ),
        version=9,
    )


def fetch_served() -> Callable[[], object]:
    wanted = FetchPartition(partition=0, fetch_offset=42, partition_max_bytes=65_536)
    found = PartitionData(
        partition_index=0,
        high_watermark=100,
        last_stable_offset=100,
        log_start_offset=0,
        records=SegmentRegion(),
    )
    return served(
        FetchRequest(
            max_wait_ms=500,
            min_bytes=1,
            topics=[FetchTopic(topic="events", partitions=[wanted])],
        ),
        FetchResponse(responses=[FetchableTopicResponse(topic="events", partitions=[found])]),
        version=12,
    )


def thousand_partitions() -> Callable[[], object]:
    partitions = [
        MetadataResponsePartition(
            partition_index=index, leader_id=1, replica_nodes=[1, 2, 3], isr_nodes=[1, 2, 3]
        )
        for index in range(1_000)
    ]
    response = MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=node, host="127.0.0.1", port=9092) for node in (1, 2, 3)
        ],
        cluster_id="bench",
        controller_id=1,
        topics=[
            MetadataResponseTopic(
                name="events", topic_id=Uuid(bytes(15) + b"1"), partitions=partitions
            )
        ],
    )
    decode, answer = decoder(MetadataResponse, 12), encoder(MetadataResponse, 12)

    def both_ways() -> None:
        out = bytearray()
        answer(response, out)
        decode(memoryview(out), 0)

    return both_ways


def fresh_import_s() -> float:
    def once() -> float:
        done = subprocess.run(
            [sys.executable, "-c", IMPORT], capture_output=True, text=True, check=True
        )
        return float(done.stdout)

    return min(once() for _ in range(FRESH_IMPORTS))


def show(name: str, took_s: float, budget: str) -> None:
    took = f"{took_s * 1e6:8.2f} us" if took_s < 1e-3 else f"{took_s * 1e3:8.2f} ms"
    print(f"{name:52} {took}   budget {budget}")


def main() -> None:
    show("Produce v9, 1 partition: request in, response out", best_s(produce_served()), "6 us")
    show("Fetch v12, 1 partition: request in, response out", best_s(fetch_served()), "6 us")
    show("Metadata v12, 1,000 partitions: out and in", best_s(thousand_partitions()), "3 ms")
    show("import penstock.wire in a fresh process", fresh_import_s(), "60 ms")


if __name__ == "__main__":
    main()
