"""Charges requests to the quotas of their clients (KIP-219)."""

from time import perf_counter_ns
from typing import Final, Protocol

import msgspec

from penstock.broker.context import Peer, Services
from penstock.broker.net.large_requests import LOGINS
from penstock.broker.peers.connection import BROKER_SOFTWARE
from penstock.wire.frame import RequestHeader
from penstock.wire.messages.fetch import FetchRequest
from penstock.wire.schema import Message

PRODUCE: Final = 0
NOT_CHARGED: Final = LOGINS | {27}
"""Logins, and transaction markers, which coordinators send."""


class Charged(Protocol):
    """A request, as far as its charge depends on it."""

    header: RequestHeader
    message: Message | None
    size_bytes: int
    began_ns: int
    spent_ns: int


def throttled(
    request: Charged, response: Message | None, peer: Peer, services: Services
) -> tuple[Message | None, int]:
    """The response with its throttle time, and that time.

    The handler may have set a throttle time already. A fetch over its request quota is answered in
    full, where Kafka returns it empty: its session has already recorded what was sent.
    """
    api, quotas = request.header.api, services.quotas
    if api.key in NOT_CHARGED or _sent_by_broker(request, peer, services):
        return response, 0
    user, client_id = peer.principal.name, request.header.client_id or ""
    delay_ms = answered_ms = int(getattr(response, "throttle_time_ms", 0))
    now_ms = quotas.monotonic_ms()
    if api.key == PRODUCE and quotas.produce.is_on:
        delay_ms = quotas.produce_ms(user, client_id, request.size_bytes, now_ms)
    if quotas.request.is_on and response is not None:
        spent_ns = request.spent_ns or perf_counter_ns() - request.began_ns
        delay_ms = max(delay_ms, quotas.request_ms(user, client_id, spent_ns, now_ms))
    if delay_ms > answered_ms and response is not None and hasattr(response, "throttle_time_ms"):
        response = msgspec.structs.replace(response, throttle_time_ms=delay_ms)
    return response, delay_ms


def _sent_by_broker(request: Charged, peer: Peer, services: Services) -> bool:
    """Whether a broker sent the request, for itself or as a forwarder: brokers are never
    throttled.
    """
    if request.header.api.inter_broker:
        return True
    message, listeners = request.message, services.listeners
    if isinstance(message, FetchRequest):
        is_follower = max(message.replica_id, message.replica_state.replica_id) >= 0
        return is_follower and peer.listener == listeners.inter_broker_listener
    # The software name rules out nearly all clients, and is cheaper to compare.
    return peer.software_name == BROKER_SOFTWARE and services.is_broker(peer)
