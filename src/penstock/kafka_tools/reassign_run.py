"""Starts, verifies, lists and cancels the moves of a plan."""

from collections.abc import Iterable, Mapping, Sized

from penstock.client.admin import describe_cluster, list_topics
from penstock.client.cluster import Client
from penstock.client.configs import Resource, alter_configs
from penstock.client.errors import BrokerRefused
from penstock.client.log_dirs import LogDirReplica, alter_replica_log_dirs
from penstock.client.metadata import PartitionMetadata
from penstock.client.reassignment import (
    OngoingReassignment,
    ongoing_reassignments,
    reassign,
)
from penstock.client.reassignment_plan import ReassignmentPlan, plan_json
from penstock.client.replication_throttle import (
    FOLLOWERS,
    LEADERS,
    RATES,
    apply,
    throttle,
    throttled_replicas,
)
from penstock.config.resource_type import ConfigResourceType
from penstock.errors import ErrorCode, KafkaError
from penstock.kafka_tools.directory_moves import directory_moves, progress_lines, targets
from penstock.kafka_tools.messages import refusal_text
from penstock.kafka_tools.parser import Arguments
from penstock.kafka_tools.reassign_plan import with_directories
from penstock.kafka_tools.tool import ToolError
from penstock.types import BrokerId, TopicPartition

DIRECTORY_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
EXISTING = (
    "Cannot execute because there is an existing partition assignment.  Use --additional to "
    "override this and create a new partition assignment in addition to the existing one. The "
    "--additional flag can also be used to change the throttle by resubmitting the current "
    "reassignment."
)
Partitions = Mapping[TopicPartition, PartitionMetadata]
Ongoing = Mapping[TopicPartition, OngoingReassignment]


async def _known(client: Client, plan: ReassignmentPlan) -> Partitions:
    """The current metadata of the plan's partitions; raises if one does not exist."""
    topics = {each.name: each for each in await list_topics(client)}
    for partition in plan:
        if partition.topic not in topics:
            raise ToolError(
                "org.apache.kafka.common.errors.UnknownTopicOrPartitionException: Topic "
                f"{partition.topic} not found."
            )
        if partition.partition not in topics[partition.topic].partitions:
            raise ToolError(f"Unable to find partition: {partition}")
    return {each: topics[each.topic].partitions[each.partition] for each in plan}


async def execute(args: Arguments, client: Client, plan: ReassignmentPlan) -> None:
    live = (await describe_cluster(client)).brokers
    if unknown := sorted({each for target in plan.values() for each in target.brokers} - set(live)):
        raise ToolError(f"Unknown broker id {unknown[0]}")
    ongoing = await ongoing_reassignments(client)
    if ongoing and not args.has("additional"):
        raise ToolError(EXISTING)
    known = await _known(client, plan)
    if args.has("disallow-replication-factor-change"):
        _check_factors(known, plan)
    current = {each: partition.replicas for each, partition in known.items()}
    print("Current partition replica assignment\n")
    print(plan_json(await with_directories(client, current)))
    print("\nSave this to use as the --reassignment-json-file option during rollback")
    await _throttle(args, client, plan, known, ongoing)
    errors = await reassign(client, {each: target.brokers for each, target in plan.items()})
    if errors:
        raise ToolError(
            "Error reassigning partition(s):\n"
            + "\n".join(f"{_about(error)}: {refusal_text(error)}" for error in errors)
        )
    print(f"Successfully started partition reassignment{_s(plan)} for {_joined(sorted(plan))}")
    await _move_directories(client, targets(plan))


def _about(error: KafkaError) -> str:
    return str(error).partition(":")[0]


def _check_factors(known: Partitions, plan: ReassignmentPlan) -> None:
    for each, target in plan.items():
        was = len(known[each].replicas)
        if len(target.brokers) != was:
            raise ToolError(
                f"The replication factor of {each} would change from {was} to "
                f"{len(target.brokers)}, and --disallow-replication-factor-change is set"
            )


async def _throttle(
    args: Arguments,
    client: Client,
    plan: ReassignmentPlan,
    known: Partitions,
    ongoing: Ongoing,
) -> None:
    rate, directory_rate = args.number("throttle"), args.number("replica-alter-log-dirs-throttle")
    if rate < 0 and directory_rate < 0:
        return
    print(
        "Warning: You must run --verify periodically, until the reassignment completes, to ensure "
        "the throttle is removed."
    )
    brokers = _brokers(plan, known)
    if rate >= 0:
        await apply(client, throttle(_limited(plan, known, ongoing), brokers, rate))
        print(f"The inter-broker throttle limit was set to {rate} B/s")
    if directory_rate >= 0:
        await _set_rates(client, brokers, {DIRECTORY_RATE: str(directory_rate)})
        print(f"The replica-alter-dir throttle limit was set to {directory_rate} B/s")


def _limited(
    plan: ReassignmentPlan, known: Partitions, ongoing: Ongoing
) -> dict[str, dict[str, str]]:
    moves = []
    for each, target in plan.items():
        sources = known[each].replicas
        if each in ongoing:
            sources = tuple(set(sources) - set(ongoing[each].adding))
        moves.append((each, sources, [n for n in target.brokers if n not in sources]))
    return throttled_replicas(moves)


def _brokers(plan: ReassignmentPlan, known: Partitions) -> list[BrokerId]:
    """All brokers that take part in a move."""
    return sorted(
        {each for target in plan.values() for each in target.brokers}
        | {each for partition in known.values() for each in partition.replicas}
    )


async def _set_rates(
    client: Client, brokers: Iterable[BrokerId], changes: Mapping[str, str | None]
) -> None:
    for broker in brokers:
        await alter_configs(client, Resource(ConfigResourceType.BROKER, str(broker)), changes)


async def _move_directories(client: Client, moves: Mapping[LogDirReplica, str]) -> None:
    if not moves:
        return
    # A replica that does not exist yet will be created in this directory.
    outcomes = await alter_replica_log_dirs(client, moves)
    for replica, error in outcomes.items():
        if error is not None and error.code is not ErrorCode.REPLICA_NOT_AVAILABLE:
            raise ToolError(
                f"Error altering {replica.partition}-{replica.broker}: {refusal_text(error)}"
            )
    for (partition, broker), path in sorted(moves.items()):
        print(
            f"Successfully started moving log directory to {path} for replica {partition} with "
            f"broker {broker} "
        )


async def verify(args: Arguments, client: Client, plan: ReassignmentPlan) -> None:
    ongoing = await ongoing_reassignments(client)
    topics = {each.name: each for each in await list_topics(client)}
    print("Status of partition reassignment:")
    known: dict[TopicPartition, PartitionMetadata] = {}
    for each, target in sorted(plan.items()):
        topic = topics.get(each.topic)
        found = None if topic is None else topic.partitions.get(each.partition)
        if found is not None:
            known[each] = found
        if each in ongoing:
            print(f"Reassignment of partition {each} is still in progress.")
        elif found is not None and found.replicas == target.brokers:
            print(f"Reassignment of partition {each} is completed.")
        else:
            now = ",".join(map(str, found.replicas)) if found else ""
            print(
                f"There is no active reassignment of partition {each}, but replica set is {now} "
                f"rather than {','.join(map(str, target.brokers))}."
            )
    moves = await directory_moves(client, plan)
    print(progress_lines(moves))
    is_done = not ongoing and all(each.is_done for each in moves.values())
    if is_done and not args.has("preserve-throttles"):
        await _clear_throttles(client, plan)


async def _clear_throttles(client: Client, plan: ReassignmentPlan) -> None:
    brokers = sorted((await describe_cluster(client)).brokers)
    topics = sorted({each.topic for each in plan})
    print(f"Clearing broker-level throttles on broker{_s(brokers)} {_joined(brokers)}")
    await _set_rates(client, brokers, dict.fromkeys((*RATES, DIRECTORY_RATE)))
    print(f"Clearing topic-level throttles on topic{_s(topics)} {_joined(topics)}")
    for topic in topics:
        changes: dict[str, str | None] = dict.fromkeys((LEADERS, FOLLOWERS))
        try:
            await alter_configs(client, Resource(ConfigResourceType.TOPIC, topic), changes)
        except BrokerRefused as refused:
            if refused.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise


async def cancel(args: Arguments, client: Client, plan: ReassignmentPlan) -> None:
    active = sorted(set(await ongoing_reassignments(client)) & set(plan))
    if active:
        errors = await reassign(client, dict.fromkeys(active))
        if errors:
            raise ToolError(
                "Error cancelling partition reassignment(s): " + "; ".join(map(str, errors))
            )
        print(f"Successfully cancelled partition reassignment{_s(active)} for: {_joined(active)}")
    else:
        print("None of the specified partition reassignments are active.")
    moves = (await directory_moves(client, plan)).items()
    back = {each: move.current for each, move in moves if move.current and move.future}
    if back:
        await _move_directories(client, back)
    else:
        print("None of the specified partition moves are active.", end="")
    if not args.has("preserve-throttles"):
        await _clear_throttles(client, plan)


async def list_moves(client: Client) -> None:
    ongoing = await ongoing_reassignments(client)
    if not ongoing:
        print("No partition reassignments found.")
        return
    print("Current partition reassignments:")
    for partition, move in sorted(ongoing.items()):
        line = f"{partition}: replicas: {_joined(move.replicas)}."
        if move.adding:
            line += f" adding: {_joined(move.adding)}."
        if move.removing:
            line += f" removing: {_joined(move.removing)}."
        print(line)


def _joined(values: Iterable[object]) -> str:
    return ",".join(map(str, values))


def _s(values: Sized) -> str:
    return "s" if len(values) > 1 else ""
