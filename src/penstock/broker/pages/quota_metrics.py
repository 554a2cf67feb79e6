"""Quotas in `/metrics`: usage of clients with a limit, and how long they are throttled."""

from collections.abc import Callable, Iterator

from penstock.broker.quotas.client_quotas import ClientQuotas, TypeQuota
from penstock.broker.quotas.meter import Meter
from penstock.http.prometheus import Metric, MetricKind, Sample, labels


def quota_metrics(quotas: ClientQuotas) -> dict[str, Metric]:
    """Metrics by user and client id; either is empty if all users or client ids share the limit."""

    def each(
        quota: TypeQuota, read: Callable[[Meter, int], float]
    ) -> Callable[[], Iterator[Sample]]:
        def samples() -> Iterator[Sample]:
            now_ms = quotas.monotonic_ms()
            for (user, client_id), meter in list(quota.meters.items()):
                if not meter.is_idle(now_ms):
                    yield Sample(read(meter, now_ms), labels(user=user, client_id=client_id))

        return samples

    def gauge(text: str, quota: TypeQuota, read: Callable[[Meter, int], float]) -> Metric:
        return Metric(MetricKind.GAUGE, text, each(quota, read))

    def rate(meter: Meter, now_ms: int) -> float:
        return meter.rate.per_second(now_ms)

    def delay(meter: Meter, now_ms: int) -> float:
        return meter.mean_delay_ms(now_ms)

    def tokens(meter: Meter, now_ms: int) -> float:
        return meter.bucket.tokens(meter.bound, now_ms)

    def queue(quota: TypeQuota) -> Metric:
        def held() -> int:
            now_ms = quotas.monotonic_ms()
            return sum(meter.held(now_ms) for meter in list(quota.meters.values()))

        return Metric(MetricKind.GAUGE, "Requests whose clients are held back now.", held)

    prefix, waits = "kafka_server", "Mean milliseconds for which connections were held back."
    return {
        f"{prefix}_produce_byte_rate": gauge("Bytes produced a second.", quotas.produce, rate),
        f"{prefix}_produce_throttle_time": gauge(waits, quotas.produce, delay),
        f"{prefix}_fetch_byte_rate": gauge("Bytes fetched a second.", quotas.fetch, rate),
        f"{prefix}_fetch_throttle_time": gauge(waits, quotas.fetch, delay),
        f"{prefix}_request_request_time": gauge(
            "Percent of the event loop's time.", quotas.request, rate
        ),
        f"{prefix}_request_throttle_time": gauge(waits, quotas.request, delay),
        f"{prefix}_controllermutation_mutation_rate": gauge(
            "Partitions created and deleted a second.", quotas.mutation, rate
        ),
        f"{prefix}_controllermutation_tokens": gauge(
            "Partitions that may be created or deleted at once; below 0, they are owed.",
            quotas.mutation,
            tokens,
        ),
        f"{prefix}_controllermutation_throttle_time": gauge(waits, quotas.mutation, delay),
        f"{prefix}_produce_queue_size": queue(quotas.produce),
        f"{prefix}_fetch_queue_size": queue(quotas.fetch),
        f"{prefix}_request_queue_size": queue(quotas.request),
        f"{prefix}_controllermutation_queue_size": queue(quotas.mutation),
        "penstock_throttled_connections": Metric(
            MetricKind.GAUGE, "Connections that are held back now.", lambda: quotas.muted
        ),
    }
