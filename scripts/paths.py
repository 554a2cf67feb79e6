"""Print how many files a request passes through: `make paths`.

Each request is sent to a broker in this process until it is warm, then counted several times; the
smallest count has no background work in it. `sys.setprofile` counts the functions that the broker's
event loop enters:

- files: files under `src/penstock` with a function that was entered;
- lines: all lines of those files, which a reader would have to open;
- switches: calls that lead from one of these files into another.

Generated codecs, C code and compiled modules have no Python functions and are not counted. With
compiled modules the result would be wrong, so the script refuses to run there. The walk through a
batch's records uses C here (`record/_walk.c`), as on a real broker, although all else is pure
Python.
"""

import asyncio
import sys
import threading
from argparse import ArgumentParser
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import penstock
from penstock.client.address import parse_addresses
from penstock.client.connection import Connection, connect
from penstock.clock import SystemClock
from penstock.controller.topics import TopicSpec
from penstock.metadata import paths
from penstock.metadata.tree import Tree
from penstock.record import validate
from penstock.testing.broker import EmbeddedBroker
from penstock.testing.controllers import running_controller
from penstock.testing.logs import batch_of
from penstock.types import BrokerId, Uuid
from penstock.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from penstock.wire.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from penstock.wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from penstock.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from penstock.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

SOURCE = Path(penstock.__file__).parent
TOPIC, GROUP = "paths", "paths"
WARM, COUNTED = 3, 7
TIMEOUT_MS = 10_000
Call = Callable[[], Awaitable[object]]


class Count(NamedTuple):
    """The path of one request."""

    files: tuple[str, ...]
    lines: int
    switches: int


class Tracer:
    """Follows the calls of one thread while `counting` is active."""

    def __init__(self) -> None:
        self._is_on = False
        self._stack: list[str] = []
        self._files: dict[str, None] = {}
        self._switches = 0

    @contextmanager
    def counting(self) -> Iterator[None]:
        self._stack, self._files, self._switches = [], {}, 0
        self._is_on = True
        try:
            yield
        finally:
            self._is_on = False

    def count(self) -> Count:
        lines = sum(len((SOURCE / name).read_text().splitlines()) for name in self._files)
        return Count(tuple(self._files), lines, self._switches)

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        if not self._is_on or event not in {"call", "return"}:
            return
        name = _ours(frame.f_code.co_filename)
        if name is None:
            return
        if event == "call":
            self._switches += bool(self._stack) and self._stack[-1] != name
            self._stack.append(name)
            self._files[name] = None
        elif self._stack:
            self._stack.pop()


def _ours(path: str) -> str | None:
    """The path below `src/penstock`; None for other code, generated codecs and the test kit."""
    if not path.startswith(str(SOURCE)):
        return None
    name = path[len(str(SOURCE)) + 1 :]
    return None if name.startswith(("testing/", "wire/hot.py")) else name


async def smallest(tracer: Tracer, call: Call) -> Count:
    for _ in range(WARM):
        await call()
    counts = []
    for _ in range(COUNTED):
        with tracer.counting():
            await call()
            await asyncio.sleep(0.01)  # includes work after the response
        counts.append(tracer.count())
    return min(counts, key=lambda each: (each.switches, len(each.files)))


async def requests(tracer: Tracer, broker: EmbeddedBroker) -> dict[str, Count]:
    broker.create_topic(TOPIC, 1)
    topic_id = broker.running.services.cluster.image.topics[TOPIC].id
    (address,) = parse_addresses(broker.bootstrap)
    connection = await connect(address, client_id="paths")
    try:
        return {
            "Produce": await smallest(tracer, produce(connection, topic_id)),
            "Fetch": await smallest(tracer, fetch(connection, topic_id)),
            "JoinGroup": await smallest(tracer, await join_group(connection)),
            "OffsetCommit": await smallest(tracer, offset_commit(connection, topic_id)),
        }
    finally:
        await connection.close()


def produce(connection: Connection, topic_id: Uuid) -> Call:
    """One batch of one record, acks=all."""

    async def call() -> None:
        part = PartitionProduceData(index=0, records=memoryview(batch_of(b"value")))
        topic = TopicProduceData(name=TOPIC, topic_id=topic_id, partition_data=[part])
        request = ProduceRequest(acks=-1, timeout_ms=TIMEOUT_MS, topic_data=[topic])
        response = await connection.call(request, ProduceResponse, timeout_ms=TIMEOUT_MS)
        assert response.responses[0].partition_responses[0].error_code == 0

    return call


def fetch(connection: Connection, topic_id: Uuid) -> Call:
    """Fetches existing records, without a fetch session."""

    async def call() -> None:
        part = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
        topic = FetchTopic(topic=TOPIC, topic_id=topic_id, partitions=[part])
        request = FetchRequest(session_epoch=-1, min_bytes=1, max_wait_ms=500, topics=[topic])
        response = await connection.call(request, FetchResponse, timeout_ms=TIMEOUT_MS)
        assert response.responses[0].partitions[0].records

    return call


async def join_group(connection: Connection) -> Call:
    """The only member of a classic group joins again."""
    find = FindCoordinatorRequest(coordinator_keys=[GROUP])
    while True:
        found = await connection.call(find, FindCoordinatorResponse, timeout_ms=TIMEOUT_MS)
        if found.coordinators[0].error_code == 0:
            break
    member = ""

    async def call() -> None:
        nonlocal member
        request = JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=TIMEOUT_MS,
            rebalance_timeout_ms=TIMEOUT_MS,
            member_id=member,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
        )
        response = await connection.call(request, JoinGroupResponse, timeout_ms=TIMEOUT_MS)
        member = response.member_id

    return call


def offset_commit(connection: Connection, topic_id: Uuid) -> Call:
    """One offset of a group without members."""

    async def call() -> None:
        part = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
        topic = OffsetCommitRequestTopic(name=TOPIC, topic_id=topic_id, partitions=[part])
        request = OffsetCommitRequest(group_id="offsets", topics=[topic])
        response = await connection.call(request, OffsetCommitResponse, timeout_ms=TIMEOUT_MS)
        assert response.topics[0].partitions[0].error_code == 0

    return call


async def election(tracer: Tracer) -> Count:
    """A broker's registration disappears, and the controller elects another leader.

    Counts from the change in the metadata store to the state change that brokers would receive.
    """
    tree = Tree.in_memory(SystemClock())
    try:
        async with running_controller(tree, brokers=(0, 1, 2)) as running:
            new = TopicSpec(TOPIC, assignments=((0, (1, 2, 0)),))
            await running.controller.create_topics([new])
            changes = len(running.brokers.changes)
            with tracer.counting():
                await running.store.delete(paths.broker(BrokerId(1)))
                while len(running.brokers.changes) == changes:
                    await asyncio.sleep(0)
            return tracer.count()
    finally:
        tree.close()


def compiled() -> list[str]:
    """Modules that were compiled from a Python file that lies beside them."""
    return [
        name
        for name, module in sys.modules.items()
        if name.startswith("penstock.")
        and (path := getattr(module, "__file__", None))
        and not path.endswith(".py")
        and Path(path).with_name(Path(path).name.partition(".")[0] + ".py").exists()
    ]


def walk_in_c() -> None:
    """Uses the C walk, as a real broker does; PENSTOCK_PURE=1 disables it (`record/walk.py`)."""
    (built,) = (SOURCE / "record").glob("_walk.*.so")
    spec = spec_from_file_location("penstock.record._walk", built)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    vars(validate)["walk"] = module.walk


def main() -> None:
    parser = ArgumentParser(description="Count the files on the paths of requests.")
    parser.add_argument("--files", action="store_true", help="also list the files of each path")
    options = parser.parse_args()
    if compiled():
        sys.exit(f"compiled modules cannot be counted: {', '.join(compiled())}")
    walk_in_c()
    tracer = Tracer()
    threading.setprofile(tracer)
    with EmbeddedBroker(settings={"group.initial.rebalance.delay.ms": "0"}) as broker:
        threading.setprofile(None)
        counts = asyncio.run(requests(tracer, broker))
    sys.setprofile(tracer)
    counts["Leader election"] = asyncio.run(election(tracer))
    sys.setprofile(None)
    print("| Path | Files | Lines of these files | Switches between files |\n|---|---|---|---|")
    for name, count in counts.items():
        print(f"| {name} | {len(count.files)} | {count.lines:,} | {count.switches} |")
    if options.files:
        for name, count in counts.items():
            print(f"\n{name}")
            for file in count.files:
                print(f"  {len((SOURCE / file).read_text().splitlines()):4} {file}")


if __name__ == "__main__":
    main()
