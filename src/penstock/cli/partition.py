"""`penstock partition`: every replica of a partition, as its own broker reports it."""

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import click

from penstock.broker.pages.replicas import Replica
from penstock.cli.frame.command import Noun
from penstock.cli.frame.terminal import warn
from penstock.cli.output import FORMAT, is_data, print_json, print_table
from penstock.cli.ranges import SECONDS
from penstock.cli.remote import Remote, remote
from penstock.client.address import Address
from penstock.client.broker_page import http_address, read_page
from penstock.client.cluster import Client
from penstock.client.metadata import PartitionMetadata, TopicMetadata
from penstock.errors import ConfigError, KafkaError

COLUMNS = (
    "PARTITION", "BROKER", "ROLE", "EPOCH", "LOG-START", "HW", "LEO", "LAG"
)  # fmt: skip


UNKNOWN = -1


@click.group(cls=Noun)
def partition() -> None:
    """Show the replicas of partitions: leader, in-sync replicas, LEO and HW."""


@partition.command("describe", example="penstock partition describe events")
@click.argument("topic")
@click.argument("index", metavar="[PARTITION]", type=int, required=False)
@click.option(
    "--watch",
    type=SECONDS,
    metavar="SECONDS",
    help="Repeat at this interval.",
)
@FORMAT
@remote
def describe(
    remote: Remote, topic: str, index: int | None, watch: float | None, output: str
) -> None:
    """Show leader, epoch, AR, ISR and OSR of each partition, and LEO and HW of each replica.

    Each broker reports its replicas by HTTP (penstock.http.listen). For a broker that does not
    answer, LEO is what the leader knows.
    """
    while True:
        show(*looked_up(remote, topic), index, output)
        if watch is None:
            return
        time.sleep(watch)
        if not is_data():
            click.echo()


def looked_up(remote: Remote, topic: str) -> tuple[TopicMetadata, list[Replica]]:
    """The topic, and its replicas on all brokers that answer."""

    async def brokers(client: Client) -> tuple[TopicMetadata, list[Address]]:
        found = await client.topic(topic)
        holders = {each for part in found.partitions.values() for each in part.replicas}
        cluster = await client.cluster()
        addresses: list[Address] = []
        for broker in cluster.brokers.values():
            if broker.id in holders:
                with warned():
                    addresses.append(await http_address(client, broker))
        return found, addresses

    found, addresses = remote.run(brokers)
    replicas: list[Replica] = []
    for address in addresses:
        with warned():
            replicas += read_page(
                address, "/replicas", {"topic": topic}, list[Replica], timeout_ms=remote.timeout_ms
            )
    return found, replicas


@contextmanager
def warned() -> Iterator[None]:
    """Turn errors into warnings, so that one unreachable broker does not hide the others."""
    try:
        yield
    except (ConfigError, KafkaError) as error:
        warn(str(error))


def show(topic: TopicMetadata, replicas: list[Replica], index: int | None, output: str) -> None:
    if index is not None and index not in topic.partitions:
        count = len(topic.partitions)
        raise ConfigError(f"PARTITION {index}: {topic.name} has partitions 0 to {count - 1}")
    for number, state in sorted(topic.partitions.items()):
        if index not in {None, number}:
            continue
        mine = [each for each in replicas if each.partition == number]
        if output == "json":
            print_json(described(topic.name, number, state, mine))
        else:
            out = [each for each in state.replicas if each not in state.isr]
            click.echo(
                f"{topic.name}-{number}  leader {state.leader}  epoch {state.leader_epoch}  "
                f"AR {spelled(state.replicas)}  ISR {spelled(state.isr)}  OSR {spelled(out)}"
            )
            print_table(COLUMNS, rows(number, state, mine))


def described(
    topic: str, number: int, state: PartitionMetadata, replicas: list[Replica]
) -> dict[str, object]:
    return {
        "topic": topic,
        "partition": number,
        "leader": state.leader,
        "leader_epoch": state.leader_epoch,
        "ar": list(state.replicas),
        "isr": list(state.isr),
        "osr": [each for each in state.replicas if each not in state.isr],
        "replicas": replicas,
    }


def rows(
    number: int, state: PartitionMetadata, replicas: list[Replica]
) -> Iterable[Sequence[object]]:
    known = {each.broker: each for each in replicas}
    leader = known.get(state.leader)
    for broker in state.replicas:
        role = "leader" if broker == state.leader else "follower"
        replica = known.get(broker)
        if replica is None:
            end = UNKNOWN if leader is None else leader.follower_ends.get(broker, UNKNOWN)
            if leader is None or end == UNKNOWN:
                yield (number, broker, role, "-", "-", "-", "-", "no answer")
            else:  # the leader's view of it
                lag = f"{leader.log_end_offset - end} (no answer)"
                yield (number, broker, role, "-", "-", "-", end, lag)
            continue
        lag = "-" if leader is None else str(leader.log_end_offset - replica.log_end_offset)
        yield (
            number,
            broker,
            role,
            replica.leader_epoch,
            replica.log_start_offset,
            replica.high_watermark,
            replica.log_end_offset,
            lag,
        )


def spelled(brokers: Iterable[int]) -> str:
    return ",".join(map(str, brokers)) or "-"
