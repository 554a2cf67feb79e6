"""The quotas of clients: finds a client's meter, and how long to throttle its connection.

The limits come from the cluster image. Without any quota, a request costs one comparison.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from penstock.broker.quotas.limits import Limit, Limits, QuotaType
from penstock.broker.quotas.meter import Meter
from penstock.config.quota import QuotaConfig
from penstock.config.value import INT_MAX
from penstock.metadata.client_entity import ClientEntity
from penstock.metadata.image import Configs

MOST_CLIENTS: Final = 10_000
"""The most clients remembered. They choose their names: a client with ever new names must not fill
the memory.
"""
MOST_CHARS: Final = 256
"""The most characters of a client id that are remembered."""
FORGET_PAUSE_MS: Final = 1000
PERCENT_OF_NS: Final = 100 / 1e9


class TypeQuota:
    """The meters of one type."""

    def __init__(self, kind: QuotaType, samples: int, window_s: int) -> None:
        self.kind, self._samples, self._window_s = kind, samples, window_s
        self._limits = Limits(kind, {})
        self._found: dict[tuple[str, str], Meter | None] = {}
        self._unknown = Meter(0, samples, window_s)
        """Marks a client that was not looked up yet."""
        self.meters: dict[tuple[str, str], Meter] = {}
        """By user and client id; "" means any."""
        self._forgot_ms = -FORGET_PAUSE_MS
        self.is_on = False
        """Whether there is a limit of this type."""

    def use(self, limits: Limits) -> None:
        """Replace the limits. Past usage still counts, as in Kafka."""
        self._limits = limits
        self.is_on = bool(limits.bounds)
        self._found.clear()

    def meter(self, user: str, client_id: str, now_ms: int) -> Meter | None:
        """The client's meter; None if it has no limit."""
        key = (user, client_id)
        known = self._found.get(key, self._unknown)
        if known is not self._unknown:
            return known
        limit = self._limits.of_client(user, client_id)
        found = None
        if limit is not None:
            # Longer ids share a meter if they begin alike.
            tags = (limit.user, limit.client_id[:MOST_CHARS])
            if tags not in self.meters and self._is_full(now_ms):
                return self._meter(limit, (limit.user, ""))  # shared until there is room again
            found = self._meter(limit, tags)
        if len(client_id) <= MOST_CHARS:
            if len(self._found) >= MOST_CLIENTS:
                self._found.clear()
            self._found[key] = found
        return found

    def _meter(self, limit: Limit, tags: tuple[str, str]) -> Meter:
        found = self.meters.get(tags)
        if found is None:
            found = self.meters[tags] = Meter(limit.bound, self._samples, self._window_s)
        found.bound = limit.bound
        return found

    def _is_full(self, now_ms: int) -> bool:
        """Whether there are too many meters, even after dropping idle ones."""
        if len(self.meters) >= MOST_CLIENTS and now_ms - self._forgot_ms >= FORGET_PAUSE_MS:
            self._forgot_ms = now_ms
            self._found.clear()
            self.meters = {
                tags: meter for tags, meter in self.meters.items() if not meter.is_idle(now_ms)
            }
        return len(self.meters) >= MOST_CLIENTS


class ClientQuotas:
    """All quotas of clients by user and client id. Belongs to the event loop."""

    def __init__(
        self,
        configs: Mapping[ClientEntity, Configs],
        config: QuotaConfig,
        monotonic_ms: Callable[[], int],
    ) -> None:
        self.monotonic_ms = monotonic_ms
        samples, window_s = config.quota_window_num, config.quota_window_size_seconds
        self.produce = TypeQuota(QuotaType.PRODUCE, samples, window_s)
        self.fetch = TypeQuota(QuotaType.FETCH, samples, window_s)
        self.request = TypeQuota(QuotaType.REQUEST, samples, window_s)
        self.mutation = TypeQuota(
            QuotaType.MUTATION,
            config.controller_quota_window_num,
            config.controller_quota_window_size_seconds,
        )
        self.muted = 0
        """Connections that are throttled now."""
        self._known: object = None
        self.is_on = False
        """Whether any client has a limit."""
        self.use(configs)

    @property
    def types(self) -> Iterator[TypeQuota]:
        yield from (self.produce, self.fetch, self.request, self.mutation)

    def use(self, configs: Mapping[ClientEntity, Configs]) -> None:
        """Take the limits from `client_configs` of another image."""
        if configs is not self._known:
            self._known = configs
            for each in self.types:
                each.use(Limits(each.kind, configs))
            self.is_on = any(each.is_on for each in self.types)

    def produce_ms(self, user: str, client_id: str, size_bytes: int, now_ms: int) -> int:
        """The throttle time after a produce request of this size."""
        meter = self.produce.meter(user, client_id, now_ms)
        return 0 if meter is None else noted(meter, meter.throttle_ms(size_bytes, now_ms), now_ms)

    def request_ms(self, user: str, client_id: str, spent_ns: int, now_ms: int) -> int:
        """The throttle time after a request that took this time; at most one window."""
        meter = self.request.meter(user, client_id, now_ms)
        if meter is None:
            return 0
        delay_ms = min(meter.throttle_ms(spent_ns * PERCENT_OF_NS, now_ms), meter.window_ms)
        return noted(meter, delay_ms, now_ms)

    def fetch_ms(self, user: str, client_id: str, size_bytes: int) -> int:
        """The throttle time of a fetch of this size; if not 0, the client gets nothing and is not
        charged.
        """
        now_ms = self.monotonic_ms()
        meter = self.fetch.meter(user, client_id, now_ms)
        if meter is None:
            return 0
        delay_ms = meter.throttle_ms(size_bytes, now_ms)
        if delay_ms:
            meter.rate.record(-size_bytes, now_ms)
        return noted(meter, delay_ms, now_ms)

    def shared_ms(self, user: str, client_id: str, size_bytes: int) -> int:
        """The throttle time of a share fetch of this size; the member gets its records anyway."""
        now_ms = self.monotonic_ms()
        meter = self.fetch.meter(user, client_id, now_ms)
        return 0 if meter is None else noted(meter, meter.throttle_ms(size_bytes, now_ms), now_ms)

    def most_fetched(self, user: str, client_id: str) -> int | None:
        """The most bytes that one fetch may return; a larger fetch could never be served."""
        meter = self.fetch.meter(user, client_id, self.monotonic_ms())
        # A bound may be as large as a number can be: the product would be infinite.
        return None if meter is None else int(min(meter.bound, INT_MAX) * meter.most_in_window)


def noted(meter: Meter, delay_ms: int, now_ms: int) -> int:
    if delay_ms:
        meter.delayed(delay_ms, now_ms)
    return delay_ms
