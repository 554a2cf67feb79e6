"""Replication and the controller in `/metrics`, by the names of Kafka's JMX exporter."""

from collections.abc import Callable, Iterator

from penstock.broker.context import Services
from penstock.broker.pages.topic_metrics import is_under_replicated
from penstock.http.prometheus import Metric, MetricKind, Sample, counter, gauge, labels
from penstock.replication.partition import Partition


def replica_metrics(services: Services) -> dict[str, Metric]:
    here = list(services.replicas.partitions)
    controller, image = services.control.controller, services.cluster.image

    def count(holds: Callable[[Partition], bool]) -> Callable[[], int]:
        return lambda: sum([holds(partition) for partition in here])

    def offline() -> int:
        return sum(
            p.leader < 0 for topic in image.topics.values() for p in topic.partitions.values()
        )

    def lags() -> Iterator[Sample]:
        for partition in here:
            if not partition.leads:
                topic, index = partition.topic_partition
                yield Sample(partition.lag, labels(topic=topic, partition=str(index)))

    isr = services.replicas.partitions.isr_counts
    manager, stats = "kafka_server_replicamanager", "kafka_controller_controllerstats"
    return {
        f"{manager}_leadercount": gauge("Partitions led here.", count(lambda p: p.leads)),
        f"{manager}_partitioncount": gauge("Replicas held here.", lambda: len(here)),
        f"{manager}_underminisrpartitioncount": gauge(
            "Partitions led here with fewer replicas in sync than min.insync.replicas.",
            count(lambda p: p.leads and len(p.isr) < p.min_isr),
        ),
        f"{manager}_underreplicatedpartitions": gauge(
            "Partitions led here with a replica that is not in sync.",
            count(lambda p: p.leads and is_under_replicated(p)),
        ),
        f"{manager}_atminisrpartitioncount": gauge(
            "Partitions led here that refuse acks=all once one more replica falls out of sync.",
            count(lambda p: p.leads and len(p.isr) == p.min_isr),
        ),
        f"{manager}_isrshrinks_total": counter(
            "Times that a replica fell out of sync with a leader here.", lambda: isr.shrinks
        ),
        f"{manager}_isrexpands_total": counter(
            "Times that a replica caught up with a leader here.", lambda: isr.expands
        ),
        f"{manager}_failedisrupdates_total": counter(
            "Changes of in-sync sets that the controller did not accept.", lambda: isr.failed
        ),
        "kafka_server_replicafetchermanager_maxlag": gauge(
            "Committed records that the slowest replica here has not copied yet.",
            lambda: max([p.lag for p in here], default=0),
        ),
        "kafka_server_fetcherlagmetrics_consumerlag": gauge(
            "Committed records that a replica here has not copied yet.", lags
        ),
        f"{stats}_leaderelectionrateandtimems": Metric(
            MetricKind.SUMMARY,
            "Leaders that this broker elected as the controller.",
            lambda: [Sample(controller.counts.elected, suffix="_count")],
        ),
        f"{stats}_uncleanleaderelections_total": counter(
            "Leaders that this broker made as the controller although they were not in sync.",
            lambda: controller.counts.unclean,
        ),
        "kafka_controller_kafkacontroller_activecontrollercount": gauge(
            "1 where this broker is the controller.", lambda: int(controller.is_active)
        ),
        "kafka_controller_kafkacontroller_offlinepartitionscount": gauge(
            "Partitions without a leader.", offline
        ),
        "kafka_brokers": gauge("Brokers that are registered.", lambda: len(image.brokers)),
    }
