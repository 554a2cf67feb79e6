"""Large requests: only a few are decoded at a time, by code that lets other threads run."""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any, cast

import pytest

from penstock.broker.context import Context, Peer
from penstock.broker.handling.slots import Slot, outside_slot
from penstock.broker.net.dispatch import Dispatch
from penstock.broker.net.large_requests import HUGE_BYTES, LARGE_AT_WORK, LARGE_BYTES
from penstock.broker.net.routes import Routes
from penstock.clock import SystemClock
from penstock.errors import ProtocolError
from penstock.metadata.client_entity import ClientEntity
from penstock.metadata.image import Configs
from penstock.wire import hot
from penstock.wire.apis import APIS
from penstock.wire.client_frame import request_frame
from penstock.wire.codec import encode, yielding_decoder, yielding_encoder
from penstock.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from support.brokers.few_services import few_services

LIMITED: dict[ClientEntity, Configs] = {
    ClientEntity(client_id="x"): {"request_percentage": "0.000001"}
}


def frame(size_bytes: int) -> memoryview:
    topics = [MetadataRequestTopic(name="x" * 1000) for _ in range(size_bytes // 1000 + 1)]
    request = MetadataRequest(topics=topics)
    return memoryview(request_frame(APIS[3], 12, 1, "x", request))[4:]


class Work:
    """A handler whose requests wait until `enough` of them run at the same time."""

    def __init__(self, enough: int = 1) -> None:
        self._enough, self._now, self.most = enough, 0, 0
        self._changed = asyncio.Condition()

    async def __call__(self, _request: Any, _ctx: Context) -> MetadataResponse:
        self._now += 1
        self.most = max(self.most, self._now)
        async with self._changed:
            self._changed.notify_all()
            await self._changed.wait_for(lambda: self.most >= self._enough)
        await asyncio.sleep(0.02)  # time for one more request than allowed to start
        self._now -= 1
        return MetadataResponse(controller_id=7)


async def handled(
    work: Work, sizes: list[int], quotas: dict[ClientEntity, Configs] | None = None
) -> list[tuple[Any, int]]:
    """The replies, and the throttle time of each client."""
    services = cast("Any", few_services(quotas))
    with ThreadPoolExecutor(1) as worker:
        services.resources = SimpleNamespace(worker=worker)
        routes = Routes({3: work})
        dispatch = Dispatch(routes, services, SystemClock(), Peer("P", "test", 0))
        requests = [dispatch.read(frame(size)) for size in sizes]
        async with asyncio.timeout(20), asyncio.TaskGroup() as group:
            tasks = [group.create_task(cast("Any", dispatch.handle(each))) for each in requests]
    return [(task.result(), each.delay_ms) for task, each in zip(tasks, requests, strict=True)]


def test_the_number_of_large_requests_at_work_is_limited_and_a_huge_one_runs_alone() -> None:
    for size, most in ((LARGE_BYTES, LARGE_AT_WORK), (HUGE_BYTES, 1)):
        work = Work(most)
        replies = asyncio.run(handled(work, [size] * (most + 3)))
        assert len(replies) == most + 3
        assert work.most == most


def test_a_large_request_that_waits_for_other_brokers_frees_its_slot() -> None:
    class Waiting(Work):
        """Waits until all requests have started, however few may run at a time."""

        def __init__(self, all_of_them: int) -> None:
            super().__init__()
            self._left = all_of_them
            self._all = asyncio.Event()

        async def __call__(self, request: Any, ctx: Context) -> MetadataResponse:
            self._left -= 1
            if not self._left:
                self._all.set()
            await outside_slot(self._all.wait())
            return await super().__call__(request, ctx)

    for size, most in ((LARGE_BYTES, LARGE_AT_WORK), (HUGE_BYTES, 1)):
        work = Waiting(most + 3)
        assert len(asyncio.run(handled(work, [size] * (most + 3)))) == most + 3
        assert work.most <= most  # they get a slot again one after the other


def test_a_failed_wait_outside_a_slot_leaves_all_slots_free() -> None:
    async def main() -> None:
        free = asyncio.Semaphore(1)

        async def works(wait: asyncio.Future[None]) -> None:
            async with Slot(free):
                await outside_slot(wait)

        failing: asyncio.Future[None] = asyncio.Future()
        async with asyncio.TaskGroup() as group:
            cancelled = group.create_task(works(asyncio.Future()))
            failed = group.create_task(fails(works(failing)))
            await asyncio.sleep(0)
            cancelled.cancel()
            failing.set_exception(ProtocolError("gone"))
        assert isinstance(failed.result(), ProtocolError)
        async with asyncio.timeout(5), Slot(free):
            assert free.locked()
        assert not free.locked()

    async def fails(work: Coroutine[Any, Any, None]) -> Exception | None:
        try:
            await work
        except ProtocolError as error:
            return error
        return None

    asyncio.run(main())


def test_large_responses_are_encoded_under_quotas_too() -> None:
    held_back = []
    for quotas in (None, LIMITED):
        (((encoded, splices), delay_ms),) = asyncio.run(handled(Work(), [LARGE_BYTES], quotas))
        assert isinstance(encoded, bytearray)
        assert not splices
        held_back.append(delay_ms > 0)
    assert held_back == [False, True]


def test_a_request_with_too_many_items_is_refused() -> None:
    few = MetadataRequest(topics=[MetadataRequestTopic(name="x")] * 10)
    whole = encode(few, 12)
    assert yielding_decoder(MetadataRequest, 12, 10)(whole, 0)[0] == few
    with pytest.raises(ProtocolError, match="more than 9 items"):
        yielding_decoder(MetadataRequest, 12, 9)(whole, 0)


def test_other_threads_run_while_a_large_message_is_decoded() -> None:
    """The functions compiled by mypyc do not let other threads run."""
    compiled = {*hot.DECODERS.values(), *hot.ENCODERS.values()}
    for message, version in hot.DECODERS:
        decode = yielding_decoder(cast("Any", message), version)
        assert decode not in compiled
        whole = encode(message(), version)
        assert decode(whole, 0) == hot.DECODERS[message, version](whole, 0)
    for message, version in hot.ENCODERS:
        assert yielding_encoder(cast("Any", message), version) not in compiled
