"""Requests in `/metrics`: their number, their refusals and their times."""

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

from penstock.broker.net.routes import Route, Routes
from penstock.http.prometheus import Metric, MetricKind, Sample, counter, labels

PRODUCE, FETCH = 0, 1
LOWEST, HIGHEST = 16, 34
"""Exponents of the histogram's bounds: 2**16 ns are 66 microseconds, 2**34 ns 17 seconds."""


def request_metrics(routes: Routes) -> dict[str, Metric]:
    def each(read: Callable[[Route], float]) -> Callable[[], Iterator[Sample]]:
        def samples() -> Iterator[Sample]:
            for route in list(routes.by_version.values()):
                yield Sample(
                    read(route), labels(request=route.api.name, version=str(route.version))
                )

        return samples

    def of(key: int, read: Callable[[Route], int]) -> Callable[[], int]:
        return lambda: sum(read(r) for (api, _), r in list(routes.by_version.items()) if api == key)

    def times() -> Iterator[Sample]:
        found: dict[str, list[Route]] = {}
        for route in list(routes.by_version.values()):
            found.setdefault(route.api.name, []).append(route)
        for name, versions in found.items():
            counts = [sum(numbers) for numbers in zip(*(r.times for r in versions), strict=True)]
            yield from histogram(name, counts, sum(r.total_ns for r in versions))

    topic = "kafka_server_brokertopicmetrics"
    return {
        "kafka_network_requestmetrics_requests_total": counter(
            "Requests.", each(lambda route: route.requests)
        ),
        "kafka_network_requestmetrics_errors_total": counter(
            "Requests refused as a whole.", each(lambda route: route.errors)
        ),
        "kafka_network_requestmetrics_totaltimems_total": counter(
            "Milliseconds from each request's last byte to its response, waiting included.",
            each(lambda route: route.total_ns / 1e6),
        ),
        "penstock_request_seconds": Metric(
            MetricKind.HISTOGRAM,
            "Time from a request's last byte to its response, waiting included.",
            times,
        ),
        f"{topic}_totalproducerequests_total": counter(
            "Produce requests.", of(PRODUCE, lambda route: route.requests)
        ),
        f"{topic}_totalfetchrequests_total": counter(
            "Fetch requests.", of(FETCH, lambda route: route.requests)
        ),
    }


def histogram(name: str, counts: Sequence[int], total_ns: int) -> Iterator[Sample]:
    """`counts[n]` requests took from 2**(n-1) to less than 2**n nanoseconds."""
    below = list(accumulate(counts))
    for power in range(LOWEST, HIGHEST + 1):
        yield Sample(below[power], labels(request=name, le=repr(2**power / 1e9)), "_bucket")
    yield Sample(below[-1], labels(request=name, le="+Inf"), "_bucket")
    yield Sample(total_ns / 1e9, labels(request=name), "_sum")
    yield Sample(below[-1], labels(request=name), "_count")
