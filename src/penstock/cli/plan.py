"""`penstock plan`: computes what a workload needs, from figures or from a running cluster."""

import re
from typing import Any

import click
import msgspec

from penstock.advice.capacity import Capacity, Workload, capacity
from penstock.advice.workload import observed
from penstock.cli.frame.command import Verb
from penstock.cli.names import TOPIC_NAME
from penstock.cli.output import FORMAT, human_bytes, print_json
from penstock.cli.remote import Remote, remote

SIZES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
SPANS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


class SizeType(click.ParamType[float]):
    """A size in bytes: `1500`, `10k`, `2MiB`."""

    name = "size"

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        found = re.fullmatch(r"([0-9.]+) ?([kmgt]?)(?:i?b)?", str(value).lower())
        try:
            return float(found[1]) * SIZES[found[2]] if found else float(value)
        except ValueError:
            self.fail(f"{value!r} is not a size: 1500, 10k, 2MiB", param, ctx)


class SpanType(click.ParamType[float]):
    """A duration in seconds: `90s`, `12h`, `7d`."""

    name = "span"

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        found = re.fullmatch(r"([0-9.]+) ?([smhdw]?)", str(value).lower())
        try:
            return float(found[1]) * SPANS[found[2] or "s"] if found else float(value)
        except ValueError:
            self.fail(f"{value!r} is not a span of time: 90s, 12h, 7d", param, ctx)


SIZE, SPAN = SizeType(), SpanType()


@click.command(
    cls=Verb,
    example=[
        "penstock plan --messages 10000 --size 1k --retention 7d --compression 3",
        "penstock plan --from-cluster --retention 30d",
    ],
)
@click.option("--messages", type=float, metavar="N", help="Messages per second.")
@click.option("--size", type=SIZE, help="Bytes of a message, before compression.")
@click.option("--retention", type=SPAN, help="How long they stay: 12h, 7d.")
@click.option("--replicas", type=click.IntRange(min=1), help="Replication factor. [3]")
@click.option(
    "--compression", type=float, help="Compression ratio: bytes before for each byte after. [1]"
)
@click.option("--spare", type=float, help="Share of the disk that stays free. [0.2]")
@click.option("--groups", type=click.IntRange(min=0), help="Groups that read all of it. [1]")
@click.option("--brokers", type=click.IntRange(min=1), help="Number of brokers. [3]")
@click.option("--partition-in", type=SIZE, help="Bytes per second into a partition. [10M]")
@click.option("--partition-out", type=SIZE, help="Bytes per second out of a partition. [20M]")
@click.option("--from-cluster", is_flag=True, help="Take values that are not given from a cluster.")
@click.option("-t", "--topic", type=TOPIC_NAME, help="With --from-cluster: only this topic.")
@FORMAT
@remote
def plan(
    remote: Remote,
    messages: float | None,
    size: float | None,
    retention: float | None,
    replicas: int | None,
    compression: float | None,
    spare: float | None,
    groups: int | None,
    brokers: int | None,
    partition_in: float | None,
    partition_out: float | None,
    from_cluster: bool,
    topic: str | None,
    output: str,
) -> None:
    """Plan disks, network and partitions of a workload.

    Stored: messages * retention * size * replicas / compression; the disk has the spare part on
    top. Partitions: enough for the throughput of one partition, and a multiple of the brokers.
    """
    given = {
        "messages_per_second": messages,
        "message_bytes": size,
        "retention_s": retention,
        "replication_factor": replicas,
        "compression": compression,
        "spare": spare,
        "consumer_groups": groups,
        "brokers": brokers,
        "partition_in_bytes_per_second": partition_in,
        "partition_out_bytes_per_second": partition_out,
    }
    if topic is not None and not from_cluster:
        raise click.UsageError(
            "--topic needs --from-cluster: it names the topic whose figures are taken"
        )
    known: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if from_cluster:
        known = {**remote.run(lambda client: observed(client, topic)), **known}
    if missing := {"messages_per_second", "message_bytes", "retention_s"} - set(known):
        options = {"messages_per_second": "--messages", "message_bytes": "--size"}
        names = ", ".join(sorted(options.get(each, "--retention") for each in missing))
        if from_cluster:  # the cluster supplied the other figures
            raise click.UsageError("give --retention: a topic keeps its records for ever")
        raise click.UsageError(f"give {names}, or --from-cluster")
    load = Workload(**known)
    need = capacity(load)
    if output == "json":
        print_json({"workload": msgspec.to_builtins(load), "capacity": msgspec.to_builtins(need)})
        return
    labels = shown(load, need)
    width = max(map(len, labels))
    for label, text in labels.items():
        click.echo(f"{label:<{width}}  {text}")


def shown(load: Workload, need: Capacity) -> dict[str, str]:
    """The plan as texts for people, by label."""

    def rates(came: float, went: float) -> str:
        return f"in {human_bytes(round(came))}/s, out {human_bytes(round(went))}/s"

    per_broker = rates(need.broker_in_bytes_per_second, need.broker_out_bytes_per_second)
    message, days = human_bytes(round(load.message_bytes)), load.retention_s / 86_400
    return {
        "messages": f"{load.messages_per_second:g}/s of {message}, kept for {days:g} days",
        "records": str(need.records_kept),
        "network": rates(need.in_bytes_per_second, need.out_bytes_per_second),
        "replication": f"{human_bytes(round(need.replication_bytes_per_second))}/s",
        "disk": human_bytes(need.disk_bytes),
        "records on disk": f"{human_bytes(need.stored_bytes)}, in all replicas",
        "each broker": f"{per_broker}, disk {human_bytes(need.broker_disk_bytes)}",
        "partitions": f"{need.partitions}, for as many consumers of a group",
    }
