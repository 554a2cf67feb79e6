"""`penstock leader`: leader elections."""

from typing import Any

import click

from penstock.cli.failure import SomeFailed
from penstock.cli.frame.command import Noun
from penstock.cli.frame.terminal import confirm
from penstock.cli.names import TOPIC_NAME
from penstock.cli.output import Column, print_rows
from penstock.cli.remote import Remote, remote
from penstock.client.cluster import Client
from penstock.client.elections import elect_leaders
from penstock.client.partition_scope import chosen_partitions
from penstock.errors import ErrorCode, KafkaError
from penstock.types import TopicPartition
from penstock.wire.enums import ElectionType


@click.group(cls=Noun)
def leader() -> None:
    """Elect leaders of partitions."""


@leader.command("elect", example=["penstock leader elect", "penstock leader elect events:0 --yes"])
@click.argument("topics", metavar="[TOPIC[:PARTITION,...]]...", nargs=-1, type=TOPIC_NAME)
@click.option(
    "--unclean",
    is_flag=True,
    help="Also elect replicas that are not in sync, where there is no leader: records are lost.",
)
@remote
def elect(remote: Remote, topics: tuple[str, ...], unclean: bool) -> None:
    """Elect the preferred leader, the first replica, of all partitions or of some."""
    kind = ElectionType.UNCLEAN if unclean else ElectionType.PREFERRED
    if unclean:
        confirm("Elect replicas that may lack acknowledged records?")

    async def work(client: Client) -> dict[TopicPartition, KafkaError | None]:
        wanted = await chosen_partitions(client, topics) if topics else None
        return await elect_leaders(client, kind, wanted)

    found = remote.run(work)
    print_rows(
        [row(tp, error) for tp, error in sorted(found.items())],
        (Column("TOPIC", "topic"), Column("PARTITION", "partition"), Column("RESULT", "result")),
    )
    failed = [error for error in found.values() if error is not None and not is_fine(error)]
    if failed:
        raise SomeFailed(failed, len(found))


def is_fine(error: KafkaError) -> bool:
    return error.code is ErrorCode.ELECTION_NOT_NEEDED


def row(tp: TopicPartition, error: KafkaError | None) -> dict[str, Any]:
    result = "elected" if error is None else error.code.name.lower()
    return {"topic": tp.topic, "partition": tp.partition, "result": result}
