"""The clients that push metrics, when each may push next, and its last values. Pure.

Everything is bounded, because names and attributes come from clients: the number of clients, the
series of each and of all, the labels of a series and their length.
"""

import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator

from msgspec import Struct, field

from penstock.broker.telemetry.otlp import DataPoint
from penstock.broker.telemetry.subscriptions import TelemetrySubscription
from penstock.errors import ErrorCode, InvalidRequest, KafkaError
from penstock.http.prometheus import labels
from penstock.types import Uuid, uuid_text

MAX_CLIENTS = 16_384
MAX_SERIES = 50_000
MAX_SERIES_PER_CLIENT = 1000
MAX_LABELS = 12
MAX_LABEL_CHARS = 128
SILENT_INTERVALS = 3
"""A client silent for this many intervals is forgotten, as in Kafka."""

NO_NAME = re.compile(r"[^a-zA-Z0-9_]")
KAFKA = "org.apache.kafka."
PREFIX = "kafka_client_"
NEVER = -1


class UnknownSubscriptionId(KafkaError):
    """The client's subscription has changed."""

    code = ErrorCode.UNKNOWN_SUBSCRIPTION_ID


class TelemetryTooLarge(KafkaError):
    """A push above `telemetry.max.bytes`."""

    code = ErrorCode.TELEMETRY_TOO_LARGE


class TooEarly(KafkaError):
    """A client asked for its subscription or pushed before its interval was over."""

    code = ErrorCode.THROTTLING_QUOTA_EXCEEDED

    def __init__(self, client: Uuid) -> None:
        super().__init__(
            f"Request from the client [{uuid_text(client)}] arrived before the next push interval "
            "time"
        )


class Series(Struct):
    """The last value of a metric with its labels."""

    labels: str
    value: float
    is_counter: bool


class TelemetryClient(Struct):
    """One client instance. Times are -1 before the first request."""

    id: Uuid
    client_id: str
    subscription: TelemetrySubscription
    asked_ms: int = NEVER
    pushed_ms: int = NEVER
    terminating: bool = False
    may_ask: bool = False
    """After a push with an outdated subscription, a client may ask again at once."""
    series: dict[tuple[str, str], Series] = field(default_factory=dict)

    def ask(self, now_ms: int) -> None:
        last_request_ms = max(self.asked_ms, self.pushed_ms)
        if (
            last_request_ms != NEVER
            and 0 <= now_ms - last_request_ms < self.subscription.interval_ms
        ):
            if not self.may_ask:
                raise TooEarly(self.id)
        else:
            self.asked_ms = now_ms
        self.may_ask = False

    def push(self, subscription_id: int, now_ms: int, *, terminating: bool) -> None:
        """Accept a push, or refuse it. The first push after asking for the subscription may come at
        any time.
        """
        if self.terminating:
            raise InvalidRequest(
                f"Client [{uuid_text(self.id)}] sent the previous request with state terminating "
                "to TRUE, can not accept any requests after that"
            )
        waited = self.asked_ms > self.pushed_ms or self.pushed_ms == NEVER
        waited = waited or not 0 <= now_ms - self.pushed_ms < self.subscription.interval_ms
        if waited:
            self.pushed_ms = now_ms
        elif not terminating:
            raise TooEarly(self.id)
        if subscription_id != self.subscription.id:
            self.may_ask = True
            raise UnknownSubscriptionId(
                f"Unknown client subscription id for the client [{uuid_text(self.id)}]"
            )

    def last_request_ms(self) -> int:
        return max(self.asked_ms, self.pushed_ms)


class TelemetryClients:
    """The clients of this broker, longest silent first. Belongs to the event loop."""

    def __init__(self) -> None:
        self.clients: OrderedDict[Uuid, TelemetryClient] = OrderedDict()
        self.dropped = 0
        """Values left out: too many, or not subscribed to."""

    def client(
        self, instance: Uuid, client_id: str, subscription: TelemetrySubscription
    ) -> TelemetryClient:
        found = self.clients.get(instance)
        if found is None:
            known_as = client_id[:MAX_LABEL_CHARS]  # an id has up to 32,767, and clients are many
            found = self.clients[instance] = TelemetryClient(instance, known_as, subscription)
            if len(self.clients) > MAX_CLIENTS:
                self.clients.popitem(last=False)
        elif found.subscription != subscription:
            # A new subscription starts afresh, as in Kafka: the client may ask for it at once.
            found.subscription, found.asked_ms, found.pushed_ms = subscription, NEVER, NEVER
            found.series.clear()
        self.clients.move_to_end(instance)
        return found

    def remove_inactive(self, now_ms: int) -> None:
        for instance, client in list(self.clients.items()):
            silence_ms = max(SILENT_INTERVALS * client.subscription.interval_ms, 60_000)
            if client.terminating or now_ms - client.last_request_ms() > silence_ms:
                del self.clients[instance]

    def received(self, client: TelemetryClient, points: Iterable[DataPoint]) -> None:
        total = sum(len(each.series) for each in self.clients.values())
        for point in points:
            if not client.subscription.asks_for(point.name):
                self.dropped += 1
                continue
            name = metric_name(point.name)
            rendered = labelled(client, point)
            known = client.series.get((name, rendered))
            if known is not None:
                known.value = known.value + point.value if point.is_delta else point.value
            elif len(client.series) < MAX_SERIES_PER_CLIENT and total < MAX_SERIES:
                client.series[name, rendered] = Series(rendered, point.value, point.is_counter)
                total += 1
            else:
                self.dropped += 1

    def by_name(self) -> Iterator[tuple[str, Series]]:
        for client in self.clients.values():
            for (name, _), series in client.series.items():
                yield name, series


def metric_name(name: str) -> str:
    """`org.apache.kafka.producer.record.send.total` is `kafka_client_producer_record_send_total`.
    The prefix keeps clients from pushing values under a broker's metric name.
    """
    return PREFIX + NO_NAME.sub("_", name.removeprefix(KAFKA))[:MAX_LABEL_CHARS]


def labelled(client: TelemetryClient, point: DataPoint) -> str:
    attributes = sorted(point.attributes)[:MAX_LABELS]
    found = {"client_id": client.client_id, "client_instance_id": uuid_text(client.id)}
    # Sorted by name, without empty ones: Prometheus sees the same series twice if labels differ
    # only in order or in an empty one.
    given = sorted((NO_NAME.sub("_", key)[:MAX_LABEL_CHARS], value) for key, value in attributes)
    for name, value in given:
        if name and value and not name[0].isdigit() and not name.startswith("__"):
            found.setdefault(name, value)
    return labels(**{name: value[:MAX_LABEL_CHARS] for name, value in found.items()})
