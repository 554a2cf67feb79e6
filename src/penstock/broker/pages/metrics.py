"""The metrics of `/metrics`: one table from name to reader, under the names that dashboards use.

Those of Kafka's JMX exporter (`kafka_server_…`) and of kafka_exporter (`kafka_topic_…`). Readers
read the counters of the parts themselves; nothing is stored for metrics.
"""

import gc
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from penstock.broker.context import Services
from penstock.broker.net.dispatch import Route, Routes
from penstock.broker.net.sasl import SaslListener
from penstock.broker.net.server import Server
from penstock.broker.pages.loop_lag import LoopLag
from penstock.broker.pages.quota_metrics import quota_metrics
from penstock.coordinator.runtime import CoordinatorRuntime
from penstock.http.prometheus import Metric, MetricKind, Sample
from penstock.replication.partition import Partition
from penstock.wire.apis import APIS

PRODUCE, FETCH = 0, 1
PROC = "/proc/self"


def counter(text: str, read: Callable[[], float | Iterable[Sample]]) -> Metric:
    return Metric(MetricKind.COUNTER, text, read)


def gauge(text: str, read: Callable[[], float | Iterable[Sample]]) -> Metric:
    return Metric(MetricKind.GAUGE, text, read)


def table(services: Services, server: Server, routes: Routes, lag: LoopLag) -> dict[str, Metric]:
    return {
        **_topics(services),
        **_requests(routes),
        **_replicas(services),
        **_coordinators(services),
        **_logs(services),
        **_server(services, server),
        **quota_metrics(services.quotas),
        **_process(),
        "penstock_event_loop_lag_seconds": gauge(
            "The greatest delay of the event loop within the last minute.",
            lambda: lag.greatest_ms / 1000,
        ),
    }


def _topics(services: Services) -> dict[str, Metric]:
    def summed(read: Callable[[Partition], int]) -> Callable[[], Iterator[Sample]]:
        def samples() -> Iterator[Sample]:
            totals: dict[str, int] = {}
            for partition in list(services.replicas.partitions):
                topic = partition.topic_partition.topic
                totals[topic] = totals.get(topic, 0) + read(partition)
            return (Sample(total, {"topic": topic}) for topic, total in totals.items())

        return samples

    def each(read: Callable[[Partition], int]) -> Callable[[], Iterator[Sample]]:
        def samples() -> Iterator[Sample]:
            for partition in list(services.replicas.partitions):
                topic, index = partition.topic_partition
                yield Sample(read(partition), {"topic": topic, "partition": str(index)})

        return samples

    def led(read: Callable[[Partition], int]) -> Callable[[], Iterator[Sample]]:
        """Only leaders report it, so that a sum over brokers counts each partition once."""

        def samples() -> Iterator[Sample]:
            for partition in list(services.replicas.partitions):
                if partition.leads:
                    topic, index = partition.topic_partition
                    yield Sample(read(partition), {"topic": topic, "partition": str(index)})

        return samples

    prefix = "kafka_server_brokertopicmetrics"
    return {
        f"{prefix}_messagesin_total": counter("Records appended.", summed(lambda p: p.records_in)),
        f"{prefix}_bytesin_total": counter("Bytes appended.", summed(lambda p: p.bytes_in)),
        f"{prefix}_bytesout_total": counter(
            "Bytes fetched by consumers.", summed(lambda p: p.bytes_out)
        ),
        f"{prefix}_replicationbytesout_total": counter(
            "Bytes fetched by followers.", summed(lambda p: p.replication_bytes_out)
        ),
        "kafka_topic_partitions": gauge(
            "Partitions of a topic that are led here.", summed(lambda p: int(p.leads))
        ),
        "kafka_topic_partition_current_offset": gauge(
            "The high watermark.", led(lambda p: p.log.high_watermark)
        ),
        "kafka_topic_partition_oldest_offset": gauge(
            "The start of the log.", led(lambda p: p.log.log_start_offset)
        ),
        "kafka_topic_partition_in_sync_replica": gauge("In sync.", led(lambda p: len(p.isr))),
        "kafka_topic_partition_replicas": gauge("Replicas.", led(lambda p: len(p.replicas))),
        "kafka_topic_partition_leader_is_preferred": gauge(
            "1 where the first replica leads.", led(lambda p: int(p.replicas[0] == p.leader))
        ),
        "kafka_topic_partition_under_replicated_partition": gauge(
            "1 where a replica is not in sync.", led(lambda p: int(is_under_replicated(p)))
        ),
        "kafka_cluster_partition_underminisr": gauge(
            "1 where acks=all is refused for want of replicas.",
            led(lambda p: int(len(p.isr) < p.min_isr)),
        ),
        "kafka_cluster_partition_atminisr": gauge(
            "1 where the next replica that is lost makes acks=all fail.",
            led(lambda p: int(len(p.isr) == p.min_isr)),
        ),
        "kafka_log_log_size": gauge("Bytes of a log.", each(lambda p: p.log.size_bytes)),
    }


def _requests(routes: Routes) -> dict[str, Metric]:
    def each(read: Callable[[Route], float]) -> Callable[[], Iterator[Sample]]:
        def samples() -> Iterator[Sample]:
            for route in list(routes.by_version.values()):
                labels = {"request": route.api.name, "version": str(route.version)}
                yield Sample(read(route), labels)

        return samples

    def of(key: int, read: Callable[[Route], int]) -> Callable[[], int]:
        return lambda: sum(read(r) for (api, _), r in list(routes.by_version.items()) if api == key)

    prefix = "kafka_server_brokertopicmetrics"
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
        f"{prefix}_totalproducerequests_total": counter(
            "Produce requests.", of(PRODUCE, lambda route: route.requests)
        ),
        f"{prefix}_totalfetchrequests_total": counter(
            "Fetch requests.", of(FETCH, lambda route: route.requests)
        ),
    }


def is_under_replicated(partition: Partition) -> bool:
    return len(partition.isr) < len(partition.replicas)


def _replicas(services: Services) -> dict[str, Metric]:
    def count(holds: Callable[[Partition], bool]) -> Callable[[], int]:
        return lambda: sum(holds(partition) for partition in list(services.replicas.partitions))

    def offline() -> int:
        topics = services.cluster.image.topics.values()
        return sum(p.leader < 0 for topic in topics for p in topic.partitions.values())

    def lags() -> Iterator[Sample]:
        for partition in list(services.replicas.partitions):
            if not partition.leads:
                topic, index = partition.topic_partition
                yield Sample(partition.lag, {"topic": topic, "partition": str(index)})

    isr = services.replicas.partitions.isr_counts
    prefix = "kafka_server_replicamanager"
    return {
        f"{prefix}_leadercount": gauge("Partitions led here.", count(lambda p: p.leads)),
        f"{prefix}_partitioncount": gauge("Replicas held here.", count(lambda _: True)),
        f"{prefix}_underminisrpartitioncount": gauge(
            "Partitions led here with fewer replicas in sync than min.insync.replicas.",
            count(lambda p: p.leads and len(p.isr) < p.min_isr),
        ),
        f"{prefix}_underreplicatedpartitions": gauge(
            "Partitions led here of which a replica is not in sync.",
            count(lambda p: p.leads and is_under_replicated(p)),
        ),
        f"{prefix}_atminisrpartitioncount": gauge(
            "Partitions led here that refuse acks=all once one more replica falls out of sync.",
            count(lambda p: p.leads and len(p.isr) == p.min_isr),
        ),
        f"{prefix}_isrshrinks_total": counter(
            "Times that a replica fell out of sync with a leader here.", lambda: isr.shrinks
        ),
        f"{prefix}_isrexpands_total": counter(
            "Times that a replica caught up with a leader here.", lambda: isr.expands
        ),
        f"{prefix}_failedisrupdates_total": counter(
            "Changes of in-sync sets that the controller did not take.", lambda: isr.failed
        ),
        "kafka_server_replicafetchermanager_maxlag": gauge(
            "Committed records that the slowest replica here has not copied yet.",
            lambda: max((p.lag for p in list(services.replicas.partitions)), default=0),
        ),
        "kafka_server_fetcherlagmetrics_consumerlag": gauge(
            "Committed records that a replica here has not copied yet.", lags
        ),
        "kafka_controller_controllerstats_uncleanleaderelections_total": counter(
            "Leaders that this broker made as the controller although they were not in sync.",
            lambda: services.control.controller.counts.unclean,
        ),
        "kafka_controller_kafkacontroller_activecontrollercount": gauge(
            "1 where this broker is the controller.",
            lambda: int(services.control.controller.is_active),
        ),
        "kafka_controller_kafkacontroller_offlinepartitionscount": gauge(
            "Partitions without a leader.", offline
        ),
    }


def _coordinators(services: Services) -> dict[str, Metric]:
    runtimes: tuple[CoordinatorRuntime[Any, Any], ...] = (
        services.coordination.groups.runtime,
        services.coordination.transactions.runtime,
    )

    def unreadable() -> Iterator[Sample]:
        for runtime in runtimes:
            yield Sample(runtime.unreadable_records, {"topic": runtime.name})

    return {
        "penstock_coordinator_unreadable_records": gauge(
            "Records of internal topics led here that were skipped because they cannot be read.",
            unreadable,
        )
    }


def _logs(services: Services) -> dict[str, Metric]:
    store = services.replicas.partitions.store
    return {
        "kafka_log_logmanager_offlinelogdirectorycount": gauge(
            "Log directories that failed.", lambda: len(store.dirs) - len(store.online)
        ),
        "penstock_log_stray_partitions": gauge(
            "Logs that may not be served, kept as -stray until an operator removes them.",
            store.count_stray,
        ),
    }


def _logins(server: Server) -> dict[str, Metric]:
    def each(read: Callable[[SaslListener], int]) -> Callable[[], Iterator[Sample]]:
        def samples() -> Iterator[Sample]:
            for name, protection in server.protections.items():
                if protection.sasl is not None:
                    yield Sample(read(protection.sasl), {"listener": name})

        return samples

    prefix = "kafka_server_socket_server_metrics"
    return {
        f"{prefix}_successful_authentication_total": counter(
            "Logins on SASL listeners.", each(lambda sasl: sasl.successes)
        ),
        f"{prefix}_failed_authentication_total": counter(
            "Refused logins on SASL listeners.", each(lambda sasl: sasl.failures)
        ),
        f"{prefix}_successful_reauthentication_total": counter(
            "Clients that logged in again (KIP-368).", each(lambda sasl: sasl.reauthentications)
        ),
    }


def _server(services: Services, server: Server) -> dict[str, Metric]:
    return {
        **_logins(server),
        "kafka_server_socket_server_metrics_connection_count": gauge(
            "Open connections.", lambda: len(server.sessions)
        ),
        "kafka_server_socket_server_metrics_broker_connection_accept_rate": gauge(
            "New connections a second.",
            lambda: server.limits.rate.per_second(services.quotas.monotonic_ms()),
        ),
        "kafka_server_socket_server_metrics_connection_accept_rate": gauge(
            "New connections a second, by listener.",
            lambda: (
                Sample(rate.per_second(services.quotas.monotonic_ms()), {"listener": name})
                for name, rate in server.limits.listener_rates.items()
            ),
        ),
        "kafka_server_socket_server_metrics_refused_connections_total": counter(
            "Connections over a limit.", lambda: server.refused_connections
        ),
        "kafka_server_delayedoperationpurgatory_size": gauge(
            "Requests that wait.", lambda: len(services.waiters)
        ),
        "kafka_server_fetchsessioncache_numincrementalfetchsessions": gauge(
            "Incremental fetch sessions.", lambda: len(services.fetch_sessions)
        ),
        "penstock_served_apis": gauge(
            "APIs of the protocol that have a handler.",
            lambda: len(services.listeners.served & APIS.keys()),
        ),
    }


def _process() -> dict[str, Metric]:
    def collections() -> Iterator[Sample]:
        for generation, stats in enumerate(gc.get_stats()):
            yield Sample(stats["collections"], {"generation": str(generation)})

    def cpu_seconds() -> float:
        times = os.times()
        return times.user + times.system

    found = {
        "process_cpu_seconds_total": counter("CPU time.", cpu_seconds),
        "python_gc_collections_total": counter("Runs of the garbage collector.", collections),
    }
    if os.path.isdir(PROC):  # noqa: PTH112  no pathlib for one question at start-up
        found["process_open_fds"] = gauge("Open files.", lambda: len(os.listdir(f"{PROC}/fd")))  # noqa: PTH208
        found["process_resident_memory_bytes"] = gauge("Memory.", _resident_bytes)
    return found


def _resident_bytes() -> int:
    with open(f"{PROC}/statm", encoding="ascii") as file:  # noqa: PTH123
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
