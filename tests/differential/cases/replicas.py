"""Log directories, elections and reassignments, as far as one broker can answer."""

from differential.batches import batch
from differential.case import Case, case
from differential.requests import ONE, THREE, produce, topic
from differential.rules import Rule, own
from differential.symbols import LOG_DIR
from penstock.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from penstock.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from penstock.wire.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
)
from penstock.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from penstock.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)

OWN_TOPICS: dict[str, dict[str, Rule]] = {
    "DescribeLogDirsResponse": {"results.topics": own("name")}
}


def _sizes(*partitions: int, of: str = "~t") -> DescribeLogDirsRequest:
    return DescribeLogDirsRequest(
        topics=[DescribableLogDirTopic(topic=of, partitions=list(partitions))]
    )


LOG_DIRS = [
    case("every topic", produce(batch(5)), DescribeLogDirsRequest(topics=None),
         topics=(topic(), topic("~u", 2)), rules=OWN_TOPICS),
    case("no topics", DescribeLogDirsRequest(topics=[])),
    case("one partition", produce(batch(5)), _sizes(0), topics=THREE),
    case("partitions out of order", produce(batch(5), partition=1), _sizes(2, 1, 0),
         topics=THREE),
    case("an unknown partition", _sizes(0, 9), topics=ONE),
    case("an unknown topic", _sizes(0, of="~none")),
    case("an empty name", _sizes(0, of="")),
    case("a topic without partitions", _sizes(), topics=ONE),
    case("the same partition twice", _sizes(0, 0), topics=ONE),
]  # fmt: skip


def _move(path: str, *partitions: int, of: str = "~t") -> AlterReplicaLogDirsRequest:
    moved = AlterReplicaLogDirTopic(name=of, partitions=list(partitions))
    return AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=path, topics=[moved])])


MOVES = [
    case("to where it is", _move(LOG_DIR, 0), topics=ONE),
    case("to a strange directory", _move("/no/such", 0), topics=ONE),
    case("to a relative directory", _move("data", 0), topics=ONE),
    case("to no directory", _move("", 0), topics=ONE),
    case("an unknown partition", _move(LOG_DIR, 7), topics=ONE),
    case("an unknown topic", _move(LOG_DIR, 0, of="~none")),
    case("an unknown topic to a strange directory", _move("/no/such", 0, of="~none")),
    case("no partitions", _move(LOG_DIR), topics=ONE),
    case("nothing", AlterReplicaLogDirsRequest()),
    case("several partitions", _move(LOG_DIR, 2, 0), topics=THREE),
]

PREFERRED, UNCLEAN = 0, 1

OWN_ELECTIONS: dict[str, dict[str, Rule]] = {
    "ElectLeadersResponse": {"replica_election_results": own("topic")}
}


def _elect(*partitions: int, of: str = "~t", kind: int = PREFERRED) -> ElectLeadersRequest:
    return ElectLeadersRequest(
        election_type=kind,
        topic_partitions=[TopicPartitions(topic=of, partitions=list(partitions))],
        timeout_ms=5000,
    )


ELECTIONS = [
    case("preferred", _elect(0), topics=ONE),
    case("preferred, several", _elect(1, 0, 2), topics=THREE),
    case("unclean", _elect(0, kind=UNCLEAN), topics=ONE, since=1),
    case("type 2", _elect(0, kind=2), topics=ONE, since=1),
    case("type -1", _elect(0, kind=-1), topics=ONE, since=1),
    case("an unknown partition", _elect(5), topics=ONE),
    case("a negative partition", _elect(-1), topics=ONE),
    case("an unknown topic", _elect(0, of="~none")),
    case("an empty name", _elect(0, of="")),
    case("no partitions", _elect(), topics=ONE),
    case("no topics", ElectLeadersRequest(topic_partitions=[], timeout_ms=5000)),
    case("every topic", ElectLeadersRequest(topic_partitions=None, timeout_ms=5000), topics=ONE,
         rules=OWN_ELECTIONS),
    case("every topic, unclean",
         ElectLeadersRequest(election_type=UNCLEAN, topic_partitions=None, timeout_ms=5000),
         topics=ONE, since=1, rules=OWN_ELECTIONS),
    case("the same partition twice", _elect(0, 0), topics=ONE),
]  # fmt: skip


def _reassign(
    replicas: list[int] | None, *, partition: int = 0, of: str = "~t", **more: bool
) -> AlterPartitionReassignmentsRequest:
    moved = ReassignablePartition(partition_index=partition, replicas=replicas)
    return AlterPartitionReassignmentsRequest(
        timeout_ms=5000, topics=[ReassignableTopic(name=of, partitions=[moved])], **more
    )


REASSIGNMENTS = [
    case("to where it is", _reassign([0]), topics=ONE),
    case("to nobody", _reassign([]), topics=ONE),
    case("to a stranger", _reassign([4]), topics=ONE),
    case("to itself and a stranger", _reassign([0, 4]), topics=ONE),
    case("to a negative broker", _reassign([-1]), topics=ONE),
    case("twice to the same", _reassign([0, 0]), topics=ONE),
    case("cancelled, though none is under way", _reassign(None), topics=ONE),
    case("an unknown partition", _reassign([0], partition=6), topics=ONE),
    case("a negative partition", _reassign([0], partition=-1), topics=ONE),
    case("an unknown topic", _reassign([0], of="~none")),
    case("an empty name", _reassign([0], of="")),
    case("nothing", AlterPartitionReassignmentsRequest(timeout_ms=5000)),
    case("no change of copies", _reassign([0], allow_replication_factor_change=False), topics=ONE,
         since=1),
    case("a forbidden change of copies", _reassign([0, 4], allow_replication_factor_change=False),
         topics=ONE, since=1),
    case("the same partition twice",
         AlterPartitionReassignmentsRequest(timeout_ms=5000, topics=[
             ReassignableTopic(name="~t", partitions=[
                 ReassignablePartition(partition_index=0, replicas=[0]),
                 ReassignablePartition(partition_index=0, replicas=[0])])]), topics=ONE),
]  # fmt: skip


def _under_way(*partitions: int, of: str = "~t") -> ListPartitionReassignmentsRequest:
    wanted = ListPartitionReassignmentsTopics(name=of, partition_indexes=list(partitions))
    return ListPartitionReassignmentsRequest(timeout_ms=5000, topics=[wanted])


UNDER_WAY = [
    case("all", ListPartitionReassignmentsRequest(timeout_ms=5000, topics=None)),
    case("no topics", ListPartitionReassignmentsRequest(timeout_ms=5000, topics=[])),
    case("one partition", _under_way(0), topics=ONE),
    case("an unknown partition", _under_way(8), topics=ONE),
    case("an unknown topic", _under_way(0, of="~none")),
    case("an empty name", _under_way(0, of="")),
    case("no partitions", _under_way(), topics=ONE),
]

CASES: list[Case] = [*LOG_DIRS, *MOVES, *ELECTIONS, *REASSIGNMENTS, *UNDER_WAY]
