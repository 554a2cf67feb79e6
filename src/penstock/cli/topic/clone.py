"""`penstock topic clone`."""

from collections.abc import Sequence

import click

from penstock.cli.frame.command import Verb
from penstock.cli.frame.progress import Progress
from penstock.cli.names import TOPIC_NAME
from penstock.cli.output import FORMAT, print_json
from penstock.cli.remote import Remote, remote
from penstock.cli.topic.summary import replication_factor
from penstock.cli.topic.view import overrides
from penstock.client.admin import NewTopic, create_topic, describe_topics
from penstock.client.cluster import Client
from penstock.client.consume import ConsumedRecord, SimpleConsumer
from penstock.client.listing import EARLIEST, LATEST, IsolationLevel
from penstock.client.offsets import list_offsets
from penstock.client.produce import IdempotentProducer, ProducerRecord
from penstock.types import TopicPartition


@click.command(
    "clone",
    cls=Verb,
    example=["penstock topic clone events copy", "penstock topic clone events backup --records"],
)
@click.argument("source", type=TOPIC_NAME)
@click.argument("target")
@click.option(
    "--records",
    "wants_records",
    is_flag=True,
    help="Copy the committed records that are there now: key, value, headers, timestamp and "
    "partition; offsets begin at 0.",
)
@FORMAT
@remote
def clone(remote: Remote, source: str, target: str, wants_records: bool, output: str) -> None:
    """Create TARGET with the partitions, replicas and settings of SOURCE."""

    async def work(client: Client) -> tuple[int, int]:
        (found,) = await describe_topics(client, [source])
        own = await overrides(client, source)
        new = NewTopic(
            name=target,
            partitions=len(found.partitions),
            replication_factor=replication_factor(found),
            configs={name: each.value or "" for name, each in own.items()},
        )
        await create_topic(client, new)
        copied = 0
        if wants_records:
            partitions = [TopicPartition(source, index) for index in found.partitions]
            copied = await copy(client, partitions, target)
        return len(found.partitions), copied

    count, copied = remote.run(work)
    if output == "json":
        print_json({"source": source, "target": target, "partition_count": count, "copied": copied})
    else:
        records = f", {copied} records" if wants_records else ""
        click.echo(f"created {target} like {source}: {count} partitions{records}")


async def copy(client: Client, partitions: Sequence[TopicPartition], target: str) -> int:
    isolation = IsolationLevel.READ_COMMITTED
    starts = await list_offsets(client, dict.fromkeys(partitions, EARLIEST))
    listed = await list_offsets(client, dict.fromkeys(partitions, LATEST), isolation=isolation)
    begin = {tp: each.offset for tp, each in starts.items()}
    ends = {tp: each.offset for tp, each in listed.items()}
    producer, copied = IdempotentProducer(client), 0
    total = sum(ends[tp] - begin[tp] for tp in partitions)
    with Progress("copying", total) as progress:
        async with SimpleConsumer(client, begin, ends=ends, isolation=isolation) as reader:
            while reader.unfinished:
                some = await reader.poll()
                await producer.send([like(each, target) for each in some])
                copied += len(some)
                progress.at(sum(reader.positions[tp] - begin[tp] for tp in partitions))
    return copied


def like(consumed: ConsumedRecord, target: str) -> ProducerRecord:
    record = consumed.record
    return ProducerRecord(
        target,
        record.value,
        record.key,
        list(record.headers),
        consumed.partition.partition,
        record.timestamp,
    )
