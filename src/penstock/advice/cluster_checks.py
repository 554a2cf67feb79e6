"""Checks of a cluster, from a snapshot to findings. Pure."""

from collections import Counter
from collections.abc import Callable, Iterator
from shlex import quote

from penstock.advice.finding import Finding, Level, some, sorted_findings
from penstock.advice.snapshot import LONG_LAG, ClusterSnapshot
from penstock.client.metadata import NO_LEADER, PartitionMetadata
from penstock.counted import counted

FULL, NEARLY_FULL = 0.95, 0.85
UNEVEN = 0.1
"""The default of Kafka's leader.imbalance.per.broker.percentage."""
FETCH_BYTES = 1 << 20
"""The default of max.partition.fetch.bytes."""
MUCH_MEMORY_BYTES = 1 << 30
READERS = "consumer"
"""The protocol type of groups that divide partitions among their members."""


def cluster_findings(seen: ClusterSnapshot) -> list[Finding]:
    return sorted_findings(finding for check in CHECKS for finding in check(seen))


def _named(seen: ClusterSnapshot, wanted: Callable[[str, PartitionMetadata], bool]) -> list[str]:
    return [
        f"{topic.name}-{each.index}"
        for topic in seen.topics
        for each in topic.partitions.values()
        if wanted(topic.name, each)
    ]


def controller(seen: ClusterSnapshot) -> Iterator[Finding]:
    if seen.cluster.controller not in seen.cluster.brokers:
        yield Finding(
            Level.ERROR,
            "controller",
            "the cluster has no controller",
            "until a broker becomes controller, no leader is elected and no topic is created",
            "look at the brokers' logs and at ZooKeeper: is it reachable from all of them?",
        )


def offline(seen: ClusterSnapshot) -> Iterator[Finding]:
    found = _named(seen, lambda _, each: each.leader == NO_LEADER)
    if found:
        yield Finding(
            Level.ERROR,
            "offline_partitions",
            f"{counted(len(found), 'partition has', 'partitions have')} no leader: {some(found)}",
            "they can be neither read nor written",
            "start the brokers that hold their in-sync replicas; if these are lost for good, "
            "`penstock leader elect --unclean` takes another replica, and loses records",
        )


def under_min_isr(seen: ClusterSnapshot) -> Iterator[Finding]:
    found = _named(
        seen,
        lambda topic, each: each.leader != NO_LEADER and len(each.isr) < seen.min_isr.get(topic, 1),
    )
    if found:
        yield Finding(
            Level.ERROR,
            "under_min_isr",
            f"{counted(len(found), 'partition has', 'partitions have')} fewer in-sync replicas "
            f"than min.insync.replicas: {some(found)}",
            "producers with acks=all are refused with NOT_ENOUGH_REPLICAS",
            "start the brokers of the missing replicas, or see why they cannot keep up",
        )


def under_replicated(seen: ClusterSnapshot) -> Iterator[Finding]:
    found = _named(
        seen, lambda _, each: each.leader != NO_LEADER and len(each.isr) < len(each.replicas)
    )
    if found:
        missing = {
            broker
            for topic in seen.topics
            for each in topic.partitions.values()
            for broker in each.replicas
            if broker not in each.isr
        }
        down = sorted(missing - set(seen.cluster.brokers))
        advice = (
            f"start broker {some(down)}"
            if down
            else f"see why broker {some(sorted(missing))} does not keep up: disk, network, load"
        )
        yield Finding(
            Level.WARNING,
            "under_replicated",
            f"{counted(len(found), 'partition has', 'partitions have')} replicas that are not in "
            f"sync: {some(found)}",
            "fewer brokers can fail without a loss than was planned",
            advice,
        )


def one_replica(seen: ClusterSnapshot) -> Iterator[Finding]:
    found = [
        topic.name
        for topic in seen.topics
        if any(len(each.replicas) == 1 for each in topic.partitions.values())
    ]
    if found and len(seen.cluster.brokers) > 1:
        yield Finding(
            Level.WARNING,
            "one_replica",
            f"{counted(len(found), 'topic has', 'topics have')} partitions with one replica: "
            f"{some(found)}",
            "their records are unavailable while a broker is down, and lost if it does not come "
            "back",
            "`penstock reassign plan --replication-factor 3 --save plan.json`, then "
            "`penstock reassign run plan.json`",
        )


def no_room_in_isr(seen: ClusterSnapshot) -> Iterator[Finding]:
    found = sorted(
        {
            topic.name
            for topic in seen.topics
            for each in topic.partitions.values()
            if len(each.replicas) > 1 and len(each.replicas) <= seen.min_isr.get(topic.name, 1)
        }
    )
    if found:
        yield Finding(
            Level.WARNING,
            "min_isr_equals_replicas",
            f"min.insync.replicas of {some(found)} is the number of replicas",
            "one broker that restarts stops all producers with acks=all",
            "`penstock config set topic NAME min.insync.replicas=N`, one below the replicas",
        )


def directories(seen: ClusterSnapshot) -> Iterator[Finding]:
    for broker, found in seen.log_dirs.items():
        for each in found:
            if each.error is not None:
                yield Finding(
                    Level.ERROR,
                    "offline_log_dir",
                    f"log directory {each.path} of broker {broker} is offline",
                    "its partitions are served by other brokers, if these have replicas",
                    "repair the disk and restart the broker; if it is lost, see "
                    "`penstock log forget --help`",
                    subject=f"{broker} {each.path}",
                )
            elif each.total_bytes > 0:
                used = 1 - each.usable_bytes / each.total_bytes
                if used >= NEARLY_FULL:
                    yield Finding(
                        Level.ERROR if used >= FULL else Level.WARNING,
                        "disk",
                        f"the disk of {each.path} on broker {broker} is {used:.0%} full",
                        "a broker whose disk is full takes its log directory offline",
                        "shorten retention.ms or retention.bytes, `penstock topic trim`, or move "
                        "partitions away: `penstock cluster rebalance`",
                        subject=f"{broker} {each.path}",
                    )


def uneven_leaders(seen: ClusterSnapshot) -> Iterator[Finding]:
    preferred, elsewhere = Counter[int](), Counter[int]()
    for topic in seen.topics:
        for each in topic.partitions.values():
            first = each.replicas[0] if each.replicas else NO_LEADER
            preferred[first] += 1
            elsewhere[first] += each.leader not in {first, NO_LEADER}
    found = [
        broker
        for broker, count in preferred.items()
        if broker in seen.cluster.brokers and elsewhere[broker] / count > UNEVEN
    ]
    if found:
        automatic = [
            each.get("auto.leader.rebalance.enable", "true") for each in seen.settings.values()
        ]
        soon = "true" in automatic
        yield Finding(
            Level.INFO,
            "preferred_leaders",
            f"broker {some(sorted(found))} does not lead many of the partitions that prefer it",
            "other brokers have more to do",
            "auto.leader.rebalance.enable is on: wait for it, or `penstock leader elect`"
            if soon
            else "`penstock leader elect`; auto.leader.rebalance.enable is off",
        )


def unclean_election(seen: ClusterSnapshot) -> Iterator[Finding]:
    found = [
        broker
        for broker, each in seen.settings.items()
        if each.get("unclean.leader.election.enable") == "true"
    ]
    if found:
        yield Finding(
            Level.WARNING,
            "unclean_leader_election",
            f"broker {some(sorted(found))} allows unclean leader election",
            "acknowledged records can be lost when brokers fail one after the other",
            "set unclean.leader.election.enable=false",
        )


def backlogs(seen: ClusterSnapshot) -> Iterator[Finding]:
    for state in seen.groups:
        group, lag = state.group, sum(state.lags.values())
        if lag < LONG_LAG:
            continue
        behind = [str(tp) for tp, each in state.lags.items() if each]
        count, partitions = len(group.members), len(state.lags)
        if count == 0:
            advice = "start its consumers; if nobody needs it, `penstock group delete` it"
        elif count < partitions:
            advice = (
                f"it has {counted(count, 'member')} for {partitions} partitions: start up to "
                f"{partitions - count} more, or more threads"
            )
        else:
            advice = (
                "every partition has a member: make processing faster, raise max.poll.records and "
                "fetch.max.bytes if it waits for fetches, or add partitions"
            )
        yield Finding(
            Level.WARNING,
            "backlog",
            f"group {group.id} has not read {counted(lag, 'record')}, in {some(behind)}",
            "records may be deleted by retention before they are read",
            f"{advice}; `penstock group why {quote(group.id)}` looks closer, and `penstock group "
            f"watch {quote(group.id)}` shows whether it catches up",
            subject=group.id,
            since_ms=state.unread_since_ms,
        )


def idle_members(seen: ClusterSnapshot) -> Iterator[Finding]:
    """Members without partitions. Only consumer groups are checked: others, such as those of
    schema registries and Connect, use the protocol to elect a leader, and members of a share group
    read the same partitions.
    """
    for state in seen.groups:
        idle = [each.client_id for each in state.group.members if not each.partitions]
        if idle and state.group.protocol_type == READERS and state.group.state == "Stable":
            yield Finding(
                Level.INFO,
                "idle_members",
                f"group {state.group.id} has {counted(len(idle), 'member')} without partitions: "
                f"{some(idle)}",
                "a partition is read by one member of a group; the others wait",
                "add partitions, or start fewer members",
                subject=state.group.id,
            )


def fetch_memory(seen: ClusterSnapshot) -> Iterator[Finding]:
    """A client may buffer up to the fetch size of each of its partitions at once."""
    for state in seen.groups:
        for each in state.group.members:
            need_bytes = len(each.partitions) * FETCH_BYTES
            if need_bytes >= MUCH_MEMORY_BYTES:
                yield Finding(
                    Level.WARNING,
                    "fetch_memory",
                    f"client {each.client_id} of group {state.group.id} reads "
                    f"{counted(len(each.partitions), 'partition')}",
                    f"with max.partition.fetch.bytes of 1 MiB it may need {need_bytes >> 20} MiB "
                    "of memory for what it fetches",
                    "set fetch.max.bytes or max.partition.fetch.bytes lower, or start more members",
                    subject=f"{state.group.id} {each.id}",
                )


def moves(seen: ClusterSnapshot) -> Iterator[Finding]:
    if seen.moving:
        names = [f"{topic}-{index}" for topic, index in seen.moving]
        yield Finding(
            Level.INFO,
            "reassignments",
            f"{counted(len(names), 'partition is', 'partitions are')} being moved: {some(names)}",
            "disks and networks have more to do until they are done",
            "`penstock reassign watch` shows progress, `penstock reassign cancel` ends it",
        )


def hanging(seen: ClusterSnapshot) -> Iterator[Finding]:
    for each in seen.hanging:
        tp = f"{each.partition.topic}-{each.partition.partition}"
        yield Finding(
            Level.ERROR,
            "hanging_transaction",
            f"producer {each.producer.id} has a transaction in {tp} that no coordinator will end",
            "consumers with read_committed do not get past it",
            f"`penstock txn abort {each.partition.topic} {each.partition.partition} "
            f"--start-offset {each.producer.transaction_start}`",
            subject=f"{tp} {each.producer.id}",
            since_ms=each.producer.last_timestamp,
        )


def failed_requests(seen: ClusterSnapshot) -> Iterator[Finding]:
    if errors := seen.failed_requests:
        yield Finding(
            Level.WARNING,
            "failed_requests",
            f"{counted(len(errors), 'request was', 'requests were')} not answered: "
            f"{some(errors, 2)}",
            "what depends on them was not checked",
            "ask again with more permissions, or when all brokers are up",
        )


CHECKS: tuple[Callable[[ClusterSnapshot], Iterator[Finding]], ...] = (
    controller,
    offline,
    under_min_isr,
    under_replicated,
    one_replica,
    no_room_in_isr,
    directories,
    uneven_leaders,
    unclean_election,
    backlogs,
    idle_members,
    fetch_memory,
    moves,
    hanging,
    failed_requests,
)
