"""The progress of replicas that a plan moves between log directories, in Kafka's wording."""

from collections.abc import Mapping
from typing import NamedTuple

from penstock.client.admin import describe_cluster
from penstock.client.cluster import Client
from penstock.client.log_dirs import LogDirReplica, describe_log_dirs
from penstock.client.reassignment_plan import ANY_DIRECTORY, ReassignmentPlan


class DirectoryMove(NamedTuple):
    """A replica's current directory, the one it is being copied to, and the one the plan wants."""

    target: str
    current: str | None = None
    future: str | None = None

    @property
    def is_done(self) -> bool:
        """Whether no copy is in progress; the replica may still be in an unplanned directory."""
        return self.current is not None and self.future is None


def targets(plan: ReassignmentPlan) -> dict[LogDirReplica, str]:
    """The directories that a plan names, by replica."""
    return {
        LogDirReplica(partition, broker): path
        for partition, target in plan.items()
        for broker, path in zip(target.brokers, target.directories, strict=True)
        if path != ANY_DIRECTORY
    }


async def directory_moves(
    client: Client, plan: ReassignmentPlan
) -> dict[LogDirReplica, DirectoryMove]:
    moves = {each: DirectoryMove(path) for each, path in sorted(targets(plan).items())}
    live = (await describe_cluster(client)).brokers if moves else {}
    for broker in sorted({each.broker for each in moves} & set(live)):
        partitions = [each.partition for each in moves if each.broker == broker]
        for directory in await describe_log_dirs(client, broker, partitions):
            for partition, found in directory.replicas.items():
                replica = LogDirReplica(partition, broker)
                place = {"future" if found.is_future else "current": directory.path}
                if replica in moves:
                    moves[replica] = moves[replica]._replace(**place)
    return moves


def progress_lines(moves: Mapping[LogDirReplica, DirectoryMove]) -> str:
    return "\n".join(_line(replica, move) for replica, move in moves.items())


def _line(replica: LogDirReplica, move: DirectoryMove) -> str:
    partition, broker = replica
    name = f"{partition}-{broker}"
    if move.current is None:
        return (
            f"Partition {partition} is not found in any live log dir on broker {broker}. There is "
            "likely an offline log directory on the broker."
        )
    if move.future == move.target:
        return f"Reassignment of replica {name} is still in progress."
    if move.future is not None:
        return (
            f"Partition {partition} on broker {broker} is being moved to log dir {move.future} "
            f"instead of {move.target}."
        )
    if move.current == move.target:
        return f"Reassignment of replica {name} completed successfully."
    return (
        f"Partition {partition} on broker {broker} is not being moved from log dir "
        f"{move.current} to {move.target}."
    )
