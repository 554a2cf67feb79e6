"""Topics, partitions and their logs in `/metrics`.

`kafka_topic_…` are the names of kafka_exporter, which queries leaders: only leaders report these,
so that a sum over brokers counts each partition once. The others are Kafka's own, by its JMX
exporter.
"""

from collections.abc import Callable, Iterator

from penstock.broker.pages.shared import Shared
from penstock.http.prometheus import Metric, Sample, counter, gauge, labels
from penstock.record.dead_letter import is_named_for_letters
from penstock.replication.partition import Partition
from penstock.replication.partitions import Partitions


def is_under_replicated(partition: Partition) -> bool:
    return len(partition.isr) < len(partition.replicas)


def topic_metrics(partitions: Partitions) -> dict[str, Metric]:
    here = list(partitions)
    labelled = Shared((each, _labels(each)) for each in here)

    def summed(read: Callable[[Partition], int]) -> Callable[[], Iterator[Sample]]:
        def samples() -> Iterator[Sample]:
            totals: dict[str, int] = {}
            for each in here:
                topic = each.topic_partition.topic
                totals[topic] = totals.get(topic, 0) + read(each)
            return (Sample(total, labels(topic=topic)) for topic, total in totals.items())

        return samples

    def each(read: Callable[[Partition], int]) -> Callable[[], Iterator[Sample]]:
        return lambda: (Sample(read(partition), text) for partition, text in labelled)

    def led(read: Callable[[Partition], int]) -> Callable[[], Iterator[Sample]]:
        return lambda: (
            Sample(read(partition), text) for partition, text in labelled if partition.leads
        )

    def letters() -> Iterator[Sample]:
        """Dead letter topics of the delay service, share groups and pipelines, and others named
        like them.
        """
        for partition, text in labelled:
            name = partition.topic_partition.topic
            if partition.leads and (
                is_named_for_letters(name)
                or partition.log.config.errors_deadletterqueue_group_enable
            ):
                log = partition.log
                yield Sample(max(log.high_watermark - log.log_start_offset, 0), text)

    topic, log = "kafka_server_brokertopicmetrics", "kafka_log_log"
    exported, cluster = "kafka_topic_partition", "kafka_cluster_partition"
    return {
        f"{topic}_messagesin_total": counter("Records appended.", summed(lambda p: p.records_in)),
        f"{topic}_bytesin_total": counter("Bytes appended.", summed(lambda p: p.bytes_in)),
        f"{topic}_bytesout_total": counter(
            "Bytes fetched by consumers.", summed(lambda p: p.bytes_out)
        ),
        f"{topic}_replicationbytesout_total": counter(
            "Bytes fetched by followers.", summed(lambda p: p.replication_bytes_out)
        ),
        f"{topic}_failedproducerequests_total": counter(
            "Batches that were refused.", lambda: partitions.failed_produces
        ),
        f"{topic}_failedfetchrequests_total": counter(
            "Partitions of fetches that were refused.", lambda: partitions.failed_fetches
        ),
        "kafka_topic_partitions": gauge(
            "Partitions of a topic that are led here.", summed(lambda p: int(p.leads))
        ),
        f"{exported}_current_offset": gauge(
            "The high watermark.", led(lambda p: p.log.high_watermark)
        ),
        f"{exported}_oldest_offset": gauge(
            "The start of the log.", led(lambda p: p.log.log_start_offset)
        ),
        f"{exported}_in_sync_replica": gauge("In sync.", led(lambda p: len(p.isr))),
        f"{exported}_replicas": gauge("Replicas.", led(lambda p: len(p.replicas))),
        f"{exported}_leader": gauge("The broker that leads.", led(lambda p: p.leader)),
        f"{exported}_leader_is_preferred": gauge(
            "1 where the first replica leads.", led(lambda p: int(p.replicas[0] == p.leader))
        ),
        f"{exported}_under_replicated_partition": gauge(
            "1 where a replica is not in sync.", led(lambda p: int(is_under_replicated(p)))
        ),
        f"{cluster}_underminisr": gauge(
            "1 where acks=all is refused for want of replicas.",
            led(lambda p: int(len(p.isr) < p.min_isr)),
        ),
        f"{cluster}_atminisr": gauge(
            "1 where the next replica that is lost makes acks=all fail.",
            led(lambda p: int(len(p.isr) == p.min_isr)),
        ),
        "penstock_dead_letter_records": gauge(
            "Records of a topic of dead letters; those that were redriven count until they are "
            "deleted.",
            letters,
        ),
        f"{log}_size": gauge("Bytes of a log.", each(lambda p: p.log.size_bytes)),
        f"{log}_logstartoffset": gauge(
            "The first offset of a log.", each(lambda p: p.log.log_start_offset)
        ),
        f"{log}_logendoffset": gauge(
            "LogEndOffset: the offset of the next record, on each replica.",
            each(lambda p: p.log.end_offset),
        ),
        f"{log}_numlogsegments": gauge("Segments of a log.", each(lambda p: len(p.log.segments))),
    }


def _labels(partition: Partition) -> str:
    topic, index = partition.topic_partition
    return labels(topic=topic, partition=str(index))
