"""`penstock verify`: writes records, reads them back, and compares."""

import secrets

import click

from penstock.cli.failure import ExitCode
from penstock.cli.frame.command import Verb
from penstock.cli.frame.progress import ProgressBar
from penstock.cli.names import TOPIC_NAME
from penstock.cli.output import FORMAT, print_json, print_state
from penstock.cli.remote import Remote, remote
from penstock.cli.verification import VerificationResult, number_of, value_of, verdict
from penstock.client.admin import describe_topics
from penstock.client.cluster import Client
from penstock.client.consume import SimpleConsumer
from penstock.client.listing import LATEST
from penstock.client.offsets import list_offsets
from penstock.client.produce import IdempotentProducer, ProducerRecord
from penstock.types import TopicPartition

AT_ONCE = 500


@click.command(cls=Verb, example="penstock verify events --records 1000")
@click.argument("topic", type=TOPIC_NAME)
@click.option("-n", "--records", type=click.IntRange(min=1), default=10_000, show_default=True)
@FORMAT
@remote
def verify(remote: Remote, topic: str, records: int, output: str) -> None:
    """Write numbered records to TOPIC, read them back, and check that none is lost, duplicated or
    out of order.

    Other records in the topic do no harm. The exit code is 1 if something is wrong.
    """
    run = secrets.token_hex(4)

    async def work(client: Client) -> VerificationResult:
        (found,) = await describe_topics(client, [topic])
        partitions = [TopicPartition(topic, index) for index in found.partitions]
        before = await list_offsets(client, dict.fromkeys(partitions, LATEST))
        producer = IdempotentProducer(client)
        with ProgressBar("writing", records) as progress:
            for first in range(0, records, AT_ONCE):
                numbers = range(first, min(first + AT_ONCE, records))
                await producer.send(
                    [ProducerRecord(topic, value_of(run, each)) for each in numbers]
                )
                progress.at(numbers.stop)
        after = await list_offsets(client, dict.fromkeys(partitions, LATEST))
        read: dict[int, list[int]] = {each.partition: [] for each in partitions}
        begin = {tp: each.offset for tp, each in before.items()}
        ends = {tp: each.offset for tp, each in after.items()}
        with ProgressBar("reading", records) as progress:
            async with SimpleConsumer(client, begin, ends=ends) as reader:
                while reader.unfinished:
                    for each in await reader.poll():
                        number = number_of(run, each.record.value)
                        if number is not None:
                            read[each.partition.partition].append(number)
                    progress.at(sum(map(len, read.values())))
        return verdict(range(records), read)

    found = remote.run(work)
    row = found.row(topic)
    if output == "json":
        print_json(row)
    else:
        said = "good" if found.is_good else "not good"
        print_state(
            f"{said}: {row['written']} written, {row['read']} read, {row['missing']} missing, "
            f"{row['repeated']} more than once, {row['disordered']} out of order",
            good=found.is_good,
        )
    if not found.is_good:
        raise SystemExit(ExitCode.FAILED)
