"""No request blocks the loop, whatever it names: each API gets requests with very many entries.

The time measured is CPU time of the loop's own thread. A turn is compared with the whole request
and with plain work done just before, so neither other processes nor a slow machine matter.
"""

import asyncio
import gc
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from functools import partial
from itertools import count
from pathlib import Path
from time import thread_time_ns
from typing import Any

import pytest

from penstock.broker.app import RunningBroker, running
from penstock.broker.authorization.guard import NotAuthorized
from penstock.broker.authorization.guarded import guarded
from penstock.broker.authorization.table import GUARDS
from penstock.broker.authorization.whole import left_to_handler
from penstock.broker.context import Context, Peer
from penstock.broker.handlers.table import HANDLERS
from penstock.broker.handling.pieces import PIECES, in_pieces_each
from penstock.broker.net.dispatch import Dispatch
from penstock.broker.net.routes import Routes
from penstock.broker.parked import Parked
from penstock.clock import SystemClock
from penstock.config.sources import Resolved, resolve
from penstock.errors import ProtocolError
from penstock.record.build import build_batch
from penstock.record.record import Record
from penstock.wire.apis import APIS, Api
from penstock.wire.client_frame import request_frame
from penstock.wire.frame import RequestHeader
from penstock.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from penstock.wire.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from penstock.wire.messages.find_coordinator import FindCoordinatorRequest
from penstock.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from penstock.wire.schema import Message
from support.long_lists import ListPath, has_numbers, lists_of_names, with_many

COUNT = 15_000
COUNT_NUMBERS = 60_000
COUNT_REFUSED = 60_000
"""More than for served requests, since a refusal takes less time."""
COUNTS = {"CreateAcls": COUNT_REFUSED, "DeleteAcls": COUNT_REFUSED}
"""Requests whose items are all refused, and so take little time each."""
SHORT_STEPS = 300_000
"""A turn that takes no longer than this many plain Python steps is short, on any machine.

That is about 40 ms; a turn of 500 names takes a twentieth of it.
"""
SHARE = 4
"""A longer turn may take at most this fraction (1/4) of the whole request: a machine may be
slow.
"""
TRIES = 3

ONE_COORDINATOR = ["offsets.topic.num.partitions=1", "transaction.state.log.num.partitions=1"]

ONE_THING = {
    "StreamsGroupHeartbeat": "the topology of an application is one value, which is compared",
}
"""Requests whose lists cannot be split, and why."""


class TimedLoop(asyncio.SelectorEventLoop):
    """Measures the CPU time of its longest turn, and of all turns together."""

    def __init__(self) -> None:
        super().__init__()
        self.longest_ns = self.total_ns = 0

    def _run_once(self) -> None:
        before = thread_time_ns()
        super()._run_once()  # type: ignore[misc]
        took_ns = thread_time_ns() - before
        self.longest_ns = max(self.longest_ns, took_ns)
        self.total_ns += took_ns

    def is_held_up(self) -> bool:
        return self.longest_ns > max(short_ns(), self.total_ns / SHARE)


def short_ns() -> int:
    """How long a short turn may take on this machine at its present speed."""
    began = thread_time_ns()
    names = {}
    for step in range(SHORT_STEPS):
        names[step] = str(step)
    return thread_time_ns() - began


async def asked(dispatch: Dispatch, frame: bytes) -> object:
    return await timed(lambda: dispatch.handle(dispatch.read(memoryview(frame)[4:])))


async def asked_or_closed(dispatch: Dispatch, frame: bytes) -> None:
    with suppress(ProtocolError):  # a session would close the connection
        await asked(dispatch, frame)


async def timed(handle: Callable[[], Any]) -> object:
    """The reply; afterwards the loop has the times of this request alone."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, TimedLoop)
    await asyncio.sleep(0)
    loop.longest_ns = loop.total_ns = 0
    reply = handle()
    if isinstance(reply, Coroutine):
        reply = await reply
    await asyncio.sleep(0)  # includes its last turn
    if isinstance(reply, Parked):
        reply = reply.attempt() or reply.expire()
        await asyncio.sleep(0)
    return reply


def frame_of(api: Api, version: int, request: Message) -> bytes:
    return bytes(request_frame(api, version, 1, "test", request))


PEER = Peer("PLAINTEXT", "127.0.0.1", 1)


def dispatch_of(broker: RunningBroker, handlers: Any) -> Dispatch:
    return Dispatch(Routes(in_pieces_each(handlers)), broker.services, SystemClock(), PEER)


async def prepare(dispatch: Dispatch) -> None:
    """Creates a topic, and the coordinators of groups and transactions."""
    topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
    await asked(dispatch, frame_of(APIS[19], 7, CreateTopicsRequest(topics=[topic])))
    for kind in (0, 1):
        wanted = FindCoordinatorRequest(key_type=kind, coordinator_keys=["t"])
        await asked(dispatch, frame_of(APIS[10], 4, wanted))


def lists() -> Iterator[tuple[Api, ListPath, int]]:
    for key in HANDLERS:
        api = APIS[key]
        if not api.inter_broker and api.name not in ONE_THING:
            for path, version in lists_of_names(api).items():
                yield api, path, version


def resolved(directory: Path, settings: list[str]) -> Resolved:
    return resolve(
        defaults={"listeners": "PLAINTEXT://127.0.0.1:0", "log.dir": str(directory / "logs")},
        pairs=[*ONE_COORDINATOR, *settings],
        strict=True,
    )


async def reported(
    api: Api, path: ListPath, version: int, ask: Callable[[], Coroutine[Any, Any, object]]
) -> list[str]:
    """The list's name if it blocks the loop in every try: a core shared with others is slow at
    times.
    """
    loop = asyncio.get_running_loop()
    assert isinstance(loop, TimedLoop)
    for _ in range(TRIES):
        await ask()
        if not loop.is_held_up():
            return []
    times = f"{loop.longest_ns / 1e6:.0f} of {loop.total_ns / 1e6:.0f} ms"
    return [f"{api.name} v{version} {'.'.join(path)}: {times}"]


async def held_up(directory: Path, settings: list[str]) -> list[str]:
    """The lists that block the loop."""
    found: list[str] = []
    async with running(resolved(directory, settings), directory) as broker:
        handlers = guarded(HANDLERS) if settings else HANDLERS
        dispatch = dispatch_of(broker, handlers)
        await prepare(dispatch)
        for api, path, version in lists():
            if settings and len(path) > 1 and path[0] != "groups":
                continue  # guards check only outer lists, and the topics of groups
            most = COUNT_NUMBERS if has_numbers(api.request, version, path) else COUNT
            most = COUNTS.get(api.name, most)
            frame = frame_of(api, version, with_many(api.request, version, path, most))
            found += await reported(api, path, version, partial(asked_or_closed, dispatch, frame))
    return found


NOT_REFUSED = {
    "Produce": "its partitions are counted before it is decoded",
    "ListGroups": "lists what may be seen",
    "ListTransactions": "lists what may be seen",
}
"""Requests whose guards refuse nothing by name, or never very many names."""


async def held_up_by_refusals(directory: Path) -> list[str]:
    """Like `held_up`, for a client without any rights."""
    found: list[str] = []
    async with running(resolved(directory, ACLS[:1]), directory) as broker:
        await prepare(dispatch_of(broker, HANDLERS))
        handlers = in_pieces_each(guarded(HANDLERS))
        for api, path, version in lists():
            if GUARDS[api.key] is left_to_handler or api.name in NOT_REFUSED:
                continue
            if any(api.key == key and path == (cut.names,) for key, cut in PIECES):
                continue  # the guard gets only a few names at a time
            header = RequestHeader(api, version, 1, "test")
            ctx = Context(header, version, PEER, SystemClock().now_ms(), broker.services)
            handler = handlers[api.key]
            try:
                await timed(partial(handler, with_many(api.request, version, path, 1), ctx))
            except NotAuthorized:
                continue  # refused as a whole, whatever it names
            request = with_many(api.request, version, path, COUNT_REFUSED)
            again = partial(timed, partial(handler, request, ctx))
            found += await reported(api, path, version, again)
    return found


@pytest.fixture
def without_collections() -> Iterator[None]:
    """Disables garbage collections, which would be charged to some request."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


ACLS = [
    "authorizer.class.name=kafka.security.authorizer.AclAuthorizer",
    "allow.everyone.if.no.acl.found=true",
]


@pytest.mark.slow
@pytest.mark.usefixtures("without_collections")
@pytest.mark.parametrize("settings", [[], ACLS], ids=["open", "with ACLs"])
def test_no_list_of_any_request_blocks_the_loop(tmp_path: Path, settings: list[str]) -> None:
    with asyncio.Runner(loop_factory=TimedLoop) as runner:
        assert runner.run(held_up(tmp_path, settings)) == []


@pytest.mark.slow
@pytest.mark.usefixtures("without_collections")
def test_no_user_without_rights_blocks_the_loop(tmp_path: Path) -> None:
    with asyncio.Runner(loop_factory=TimedLoop) as runner:
        assert runner.run(held_up_by_refusals(tmp_path)) == []


DAY_MS = 86_400_000
ROLLING = 300
"""Partitions of one request whose batches all begin a segment, a week after the one before."""


async def rolls(directory: Path) -> list[str]:
    async with running(resolved(directory, []), directory) as broker:
        dispatch = dispatch_of(broker, HANDLERS)
        topic = CreatableTopic(name="t", num_partitions=ROLLING, replication_factor=1)
        await asked(dispatch, frame_of(APIS[19], 7, CreateTopicsRequest(topics=[topic])))
        days = count(1, 8)

        async def produced() -> None:
            batch = bytes(build_batch([Record(0, next(days) * DAY_MS, b"k", b"v", [])]))
            parts = [PartitionProduceData(index=each, records=batch) for each in range(ROLLING)]
            data = [TopicProduceData(name="t", partition_data=parts)]
            request = ProduceRequest(acks=1, timeout_ms=1, topic_data=data)
            frame = memoryview(bytearray(frame_of(APIS[0], 9, request)))[4:]
            answer = await timed(lambda: dispatch.handle(dispatch.read(frame)))
            assert isinstance(answer, ProduceResponse)
            assert [each.error_code for each in answer.responses[0].partition_responses] == (
                [0] * ROLLING
            )

        await produced()
        return await reported(APIS[0], ("segments",), 9, produced)


@pytest.mark.usefixtures("without_collections")
def test_batches_that_each_begin_a_segment_do_not_block_the_loop(tmp_path: Path) -> None:
    with asyncio.Runner(loop_factory=TimedLoop) as runner:
        assert runner.run(rolls(tmp_path)) == []


def test_a_handler_without_turns_is_detected(tmp_path: Path) -> None:
    def slow(_request: DescribeGroupsRequest, _: Context) -> DescribeGroupsResponse:
        until = thread_time_ns() + 3 * short_ns()
        while thread_time_ns() < until:
            pass
        return DescribeGroupsResponse()

    async def main() -> bool:
        async with running(resolved(tmp_path, []), tmp_path) as broker:
            dispatch = Dispatch(Routes({15: slow}), broker.services, SystemClock(), PEER)
            await asked(dispatch, frame_of(APIS[15], 5, DescribeGroupsRequest(["g"])))
        loop = asyncio.get_running_loop()
        assert isinstance(loop, TimedLoop)
        return loop.is_held_up()

    with asyncio.Runner(loop_factory=TimedLoop) as runner:
        assert runner.run(main())
