"""Fetch (key 1, v4-v18): batches from an offset on, as slices of segment files for `sendfile`.

Waits until `min_bytes` are available or `max_wait_ms` is over. The first batch is sent whole even
if it is larger than every limit. Supports full and incremental sessions (KIP-227), isolation levels
and topic ids. A follower reads up to the log's end, and reports its own end by its fetch offset.
From v11 on consumers may read from followers, and get the id of one in their rack (KIP-392).
Refused: fetches as a replica, except on the inter-broker listener.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Final

from penstock.broker.context import Context
from penstock.broker.fetch.budget import FetchBudget
from penstock.broker.fetch.reading import PARTITIONS_A_TURN, FetchParams, FetchReading
from penstock.broker.fetch.sessions import FetchSession, is_full, partition_count, requested
from penstock.broker.handling.turns import turns
from penstock.broker.parked import Parked, client_wait_ms
from penstock.replication.selector import is_rack_aware
from penstock.security.acl import AclOperation
from penstock.wire.messages.fetch import FetchRequest, FetchResponse

READ_UNCOMMITTED: Final = 0
READ_COMMITTED: Final = 1
MANY_PARTITIONS: Final = 10_000
"""A fetch of more partitions is read in turns."""


def fetch(
    request: FetchRequest, ctx: Context
) -> FetchResponse | Parked[FetchResponse] | Coroutine[None, None, FetchResponse]:
    if partition_count(request) > MANY_PARTITIONS and is_full(request):
        return fetch_in_turns(request, ctx)
    session = ctx.services.fetch_sessions.begin(request, uses_ids=ctx.version >= 13)
    reading = reading_of(session, request, ctx)
    reading.read_all(is_arriving=True)
    if request.max_wait_ms <= 0 or reading.is_ready or not session.partitions:
        return answer(reading, ctx)

    def attempt() -> FetchResponse | None:
        found_before = not reading.is_empty
        reading.read_changed()
        if found_before and reading.is_ready:
            reading.read_all()  # records found earlier may be gone
        return answer(reading, ctx) if reading.is_ready else None

    def expire() -> FetchResponse:
        reading.read_all()
        return answer(reading, ctx)

    return Parked(
        reading.keys,
        client_wait_ms(reading.wait_ms),
        attempt,
        expire,
        reading.notice,
        # A follower that gets more partitions to copy ends the wait by sending any request.
        gives_way=reading.is_for_follower,
    )


async def fetch_in_turns(request: FetchRequest, ctx: Context) -> FetchResponse:
    """A fetch that names very many partitions, existing or not. It does not wait: a record that
    arrived between its turns would not wake it.
    """
    everything = {}
    for count, (key, cached) in enumerate(requested(request), 1):
        everything[key] = cached
        if count % PARTITIONS_A_TURN == 0:
            await asyncio.sleep(0)
    session = ctx.services.fetch_sessions.begin(
        request, uses_ids=ctx.version >= 13, everything=everything
    )
    reading = reading_of(session, request, ctx)
    await turns(reading.read_all_in_turns())
    if ctx.services.quotas.is_on:
        return answer(reading, ctx)
    return await turns(reading.response_in_turns())


def reading_of(session: FetchSession, request: FetchRequest, ctx: Context) -> FetchReading:
    services, most = ctx.services, most_bytes(request, ctx)
    return FetchReading(
        session,
        params(request, ctx),
        FetchBudget(
            most,
            min(request.min_bytes, most),
            services.resources.file_shares.slices,
        ),
        request.max_wait_ms,
        services.cluster,
        services.replicas.partitions,
        services.replicas.leader_throttle,
    )


def most_bytes(request: FetchRequest, ctx: Context) -> int:
    """The byte limit; a client quota lowers it to what its windows allow."""
    most = min(request.max_bytes, ctx.services.config.network.fetch_max_bytes)
    quotas = ctx.services.quotas
    if quotas.is_on and quotas.fetch.is_on:
        allowed = quotas.most_fetched(ctx.peer.principal.name, ctx.header.client_id or "")
        most = most if allowed is None else min(most, allowed)
    return most


def answer(reading: FetchReading, ctx: Context) -> FetchResponse:
    """The response. A consumer over its quota gets no records yet, and fetches again later."""
    quotas = ctx.services.quotas
    if quotas.is_on and quotas.fetch.is_on and not reading.is_for_follower:
        client_id = ctx.header.client_id or ""
        delay_ms = quotas.fetch_ms(ctx.peer.principal.name, client_id, reading.size_bytes())
        if delay_ms:
            session_id = ctx.services.fetch_sessions.unsent(reading.session)
            return FetchResponse(throttle_time_ms=delay_ms, session_id=session_id)
    return reading.response()


def params(request: FetchRequest, ctx: Context) -> FetchParams:
    services, listener, rack = ctx.services, ctx.peer.listener, request.rack_id
    if rack and not is_rack_aware(services.config.replication.replica_selector_class):
        rack = ""
    return FetchParams(
        listener=listener,
        replica_id=max(request.replica_id, request.replica_state.replica_id),
        broker_epoch=request.replica_state.replica_epoch,
        may_be_replica=listener == services.listeners.inter_broker_listener,
        is_valid=request.max_bytes >= 0
        and request.isolation_level in {READ_UNCOMMITTED, READ_COMMITTED},
        read_committed=request.isolation_level == READ_COMMITTED,
        may_read_followers=ctx.version >= 11,
        rack=rack,
        tells_leader=ctx.version >= 16,
        may_read=may_read(request, ctx),
    )


def may_read(request: FetchRequest, ctx: Context) -> Callable[[str], bool] | None:
    """The check for every partition of the session, including those named by earlier requests."""
    authorizer = ctx.services.authorizer
    if authorizer is None:
        return None
    access = authorizer.access(ctx.peer, ctx.header.api.name)
    if max(request.replica_id, request.replica_state.replica_id) >= 0:
        is_broker = access.cluster(AclOperation.CLUSTER_ACTION)
        return lambda _: is_broker
    return lambda topic: access.topic(AclOperation.READ, topic)
