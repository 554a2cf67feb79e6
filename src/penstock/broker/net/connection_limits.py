"""Decides whether a new connection opens, waits or is closed, by counts and rates, as in Kafka.
Pure.

Over `max.connections`, or over a rate, new connections wait in the listen backlog. The inter-broker
listener is protected if there is another one: the broker-wide count and rate do not apply to it, so
that clients cannot cut brokers off from each other (KIP-402, KIP-612).
"""

from collections import Counter
from collections.abc import Mapping
from typing import Final, NamedTuple

from penstock.broker.quotas.limits import Limits, QuotaType
from penstock.broker.quotas.rate import Rate
from penstock.config.network import NetworkConfig
from penstock.config.value import INT_MAX

SLOT_WAIT_MS: Final = 100
"""The pause before the next check for a free slot."""
LONGEST_WAIT_MS: Final = 1000
MOST_ADDRESSES: Final = 10_000
MAX_CONNECTIONS, CREATION_RATE = "max.connections", "max.connection.creation.rate"


class ListenerLimits(NamedTuple):
    """`listener.name.<name>.max.connections` and `….max.connection.creation.rate`."""

    connections: int = INT_MAX
    rate: int = INT_MAX


def listener_limits(texts: Mapping[str, str], listener: str) -> ListenerLimits:
    """The limits of one listener; a value that is not a number means no limit."""

    def number(name: str) -> int:
        text = texts.get(f"listener.name.{listener.lower()}.{name}", "")
        return int(text) if text.isdecimal() else INT_MAX

    return ListenerLimits(number(MAX_CONNECTIONS), number(CREATION_RATE))


class Waits(NamedTuple):
    """The mean wait over the last windows. Connections that did not wait do not count."""

    sum_ms: Rate
    times: Rate

    def record(self, wait_ms: int, now_ms: int) -> None:
        if wait_ms:
            self.sum_ms.record(wait_ms, now_ms)
            self.times.record(1, now_ms)

    def mean_ms(self, now_ms: int) -> float:
        count = self.times.per_second(now_ms)
        return self.sum_ms.per_second(now_ms) / count if count else 0.0


class ConnectionLimits:
    """Counts connections and their rates. Times are arguments."""

    def __init__(self, samples: int, window_s: int, protected: str = "") -> None:
        self._samples, self._window_ms, self._protected = samples, window_s * 1000, protected
        self.by_ip: Counter[str] = Counter()
        self.by_listener: Counter[str] = Counter()
        self.rate = self._new_rate()
        self.listener_rates: dict[str, Rate] = {}
        self._ip_rates: dict[str, Rate] = {}
        self._forgot_ms = -self._window_ms
        self.waits: dict[str, Waits] = {}
        self.ip_waits: dict[str, Waits] = {}
        """Waits by listener: `waits` for broker and listener rates, `ip_waits` for rates by
        address.
        """

    def _new_rate(self) -> Rate:
        return Rate(self._samples, self._window_ms)

    def add_listener(self, listener: str) -> None:
        self.listener_rates.setdefault(listener, self._new_rate())
        for waits in (self.waits, self.ip_waits):
            waits.setdefault(listener, Waits(self._new_rate(), self._new_rate()))

    def is_protected(self, listener: str) -> bool:
        return listener == self._protected and len(self.listener_rates) > 1

    def wait_ms(
        self, listener: str, network: NetworkConfig, own: ListenerLimits, now_ms: int
    ) -> int:
        """How long this listener stops accepting connections."""
        is_protected = self.is_protected(listener)
        if self.by_listener[listener] >= own.connections:
            return SLOT_WAIT_MS
        # By listener: there are few, but addresses may be many thousand.
        if not is_protected and self.by_listener.total() >= network.max_connections:
            return SLOT_WAIT_MS
        wait_ms = _over(self.listener_rates[listener], own.rate, now_ms)
        if not is_protected:
            wait_ms = max(wait_ms, _over(self.rate, network.max_connection_creation_rate, now_ms))
        self.waits[listener].record(wait_ms, now_ms)
        return wait_ms

    def accepted(self, listener: str, now_ms: int) -> None:
        self.listener_rates[listener].record(1, now_ms)
        self.rate.record(1, now_ms)

    def ip_throttle_ms(self, listener: str, ip: str, limits: Limits, now_ms: int) -> int:
        """How long to hold a connection before closing it, if its client connects too often."""
        bound = limits.of_address(ip)
        if bound is None:
            return 0
        rate = self._ip_rates.get(ip)
        if rate is None:
            self._forget_idle(now_ms)
            rate = self._ip_rates[ip] = self._new_rate()
        rate.record(1, now_ms)
        wait_ms = min(rate.throttle_ms(bound, now_ms), self._window_ms)
        if wait_ms:
            rate.record(-1, now_ms)
            self.ip_waits[listener].record(wait_ms, now_ms)
        return wait_ms

    def _forget_idle(self, now_ms: int) -> None:
        """Drop idle addresses, at most once per window: a scan for each of many new addresses would
        block the loop.
        """
        is_due = now_ms - self._forgot_ms >= self._window_ms
        if is_due and len(self._ip_rates) >= MOST_ADDRESSES:
            self._forgot_ms = now_ms
            known = self._ip_rates.items()
            self._ip_rates = {each: it for each, it in known if not it.is_idle(now_ms)}

    def has_room(self, ip: str, network: NetworkConfig) -> bool:
        """Whether the address has fewer connections than it may."""
        limit = network.connections_by_ip.get(ip, network.max_connections_per_ip)
        return self.by_ip[ip] < limit

    def opened(self, listener: str, ip: str) -> None:
        self.by_ip[ip] += 1
        self.by_listener[listener] += 1

    def closed(self, listener: str, ip: str) -> None:
        self.by_listener[listener] -= 1
        self.by_ip[ip] -= 1
        if not self.by_ip[ip]:
            del self.by_ip[ip]


def _over(rate: Rate, limit: int, now_ms: int) -> int:
    if limit == INT_MAX:
        return 0
    if not limit:
        return LONGEST_WAIT_MS
    return min(rate.throttle_ms(limit, now_ms), LONGEST_WAIT_MS)


NO_LIMITS: Final = Limits(QuotaType.CONNECTION, {})
