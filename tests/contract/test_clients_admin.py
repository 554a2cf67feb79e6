"""Topics, configs and the cluster through each client's own admin API."""

import pytest

from clients.brokers import BROKERS, parameters
from clients.catalog import over
from clients.protocol import EARLIEST, LATEST, Client, Partition, Record, RefusedError
from clients.settle import settled
from penstock.errors import ErrorCode

pytestmark = [
    pytest.mark.peer,
    pytest.mark.parametrize("target", parameters(BROKERS), indirect=True, scope="session"),
]


def numbers(client: Client, topic: str) -> list[int]:
    return [part.number for part in client.partitions(topic)]


def described(client: Client, topic: str, *names: str) -> dict[str, str]:
    configs = client.configs(topic)
    return {name: configs[name] for name in names}


def refusal(excinfo: pytest.ExceptionInfo[RefusedError]) -> ErrorCode:
    return excinfo.value.code


@over("create")
def test_a_topic_is_created_as_requested(client: Client, referee: Client, topic: str) -> None:
    client.create_topic(topic, partitions=3, configs={"retention.ms": "7000"})
    assert settled(lambda: numbers(referee, topic), [0, 1, 2]) == [0, 1, 2]
    assert referee.configs(topic)["retention.ms"] == "7000"


@over("create")
def test_a_topic_is_created_only_once(client: Client, topic: str) -> None:
    client.create_topic(topic)
    with pytest.raises(RefusedError) as refused:
        client.create_topic(topic)
    assert refusal(refused) == ErrorCode.TOPIC_ALREADY_EXISTS


@over("create")
@pytest.mark.parametrize(
    ("name", "partitions", "configs", "code"),
    [
        ("{}", 1, {"retention.ms": "soon"}, ErrorCode.INVALID_CONFIG),
        ("{}", 1, {"no.such.setting": "1"}, ErrorCode.INVALID_CONFIG),
        ("{} with blanks", 1, {}, ErrorCode.INVALID_TOPIC_EXCEPTION),
    ],
    ids=["value", "setting", "name"],
)
def test_an_invalid_topic_is_refused(
    client: Client,
    topic: str,
    name: str,
    partitions: int,
    configs: dict[str, str],
    code: ErrorCode,
) -> None:
    with pytest.raises(RefusedError) as refused:
        client.create_topic(name.format(topic), partitions, configs)
    assert refusal(refused) == code


@over()
def test_a_topic_is_listed_and_described(client: Client, referee: Client, topic: str) -> None:
    referee.create_topic(topic, partitions=2)
    assert settled(lambda: topic in client.topics(), wanted=True)
    brokers = referee.cluster().brokers
    found = sorted(client.partitions(topic))
    assert [each.number for each in found] == [0, 1]
    for each in found:
        assert each.leader in brokers
        assert each == Partition(each.number, each.leader, [each.leader], [each.leader])


@over("create")
def test_a_deleted_topic_is_gone_and_its_name_is_free(
    client: Client, referee: Client, topic: str
) -> None:
    referee.create_topic(topic)
    referee.produce(topic, [Record(b"old", partition=0)])
    client.delete_topic(topic)
    assert settled(lambda: topic in client.topics(), wanted=False) is False

    def created() -> bool:
        client.create_topic(topic, partitions=2)
        return True

    assert settled(created, wanted=True)  # the controller may not have completed the deletion
    assert settled(lambda: referee.offset(topic, 0, LATEST), 0) == 0


@over("create")
def test_a_missing_topic_cannot_be_deleted(client: Client, topic: str) -> None:
    with pytest.raises(RefusedError) as refused:
        client.delete_topic(topic)
    assert refusal(refused) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@over("configs")
def test_configs_are_described(client: Client, referee: Client, topic: str) -> None:
    referee.create_topic(topic, configs={"cleanup.policy": "compact"})
    wanted = {
        "cleanup.policy": "compact",
        "retention.ms": "604800000",
        "segment.bytes": "1073741824",
    }
    assert described(client, topic, *wanted) == wanted


@over("replace configs")
def test_replacing_configs_resets_unnamed_ones(client: Client, referee: Client, topic: str) -> None:
    referee.create_topic(topic, configs={"cleanup.policy": "compact"})
    client.replace_configs(topic, {"retention.ms": "9000"})
    wanted = {"retention.ms": "9000", "cleanup.policy": "delete"}
    assert settled(lambda: described(referee, topic, *wanted), wanted) == wanted


@over("alter configs")
def test_altering_configs_keeps_unnamed_ones(client: Client, referee: Client, topic: str) -> None:
    referee.create_topic(topic, configs={"cleanup.policy": "compact", "retention.ms": "5000"})
    client.alter_configs(topic, {"segment.bytes": "1048576"}, ["retention.ms"])
    wanted = {
        "cleanup.policy": "compact",
        "segment.bytes": "1048576",
        "retention.ms": "604800000",
    }
    assert settled(lambda: described(referee, topic, *wanted), wanted) == wanted


@over("alter configs")
def test_a_config_of_the_wrong_type_is_refused(client: Client, referee: Client, topic: str) -> None:
    referee.create_topic(topic)
    with pytest.raises(RefusedError) as refused:
        client.alter_configs(topic, {"retention.ms": "soon"}, [])
    assert refusal(refused) == ErrorCode.INVALID_CONFIG
    assert referee.configs(topic)["retention.ms"] == "604800000"


@pytest.mark.row("A013")
@over("create")
def test_partitions_are_added(client: Client, referee: Client, topic: str) -> None:
    referee.create_topic(topic)
    client.create_partitions(topic, 3)
    assert settled(lambda: numbers(referee, topic), [0, 1, 2]) == [0, 1, 2]


@over("create")
def test_partitions_cannot_be_removed(client: Client, referee: Client, topic: str) -> None:
    referee.create_topic(topic, partitions=3)
    with pytest.raises(RefusedError) as refused:
        client.create_partitions(topic, 2)
    assert refusal(refused) == ErrorCode.INVALID_PARTITIONS


@over("delete records")
def test_records_before_an_offset_are_deleted(client: Client, referee: Client, topic: str) -> None:
    referee.create_topic(topic)
    referee.produce(topic, [Record(b"%d" % number, partition=0) for number in range(5)])
    client.delete_records(topic, 0, 3)
    assert referee.offset(topic, 0, EARLIEST) == 3
    assert referee.offset(topic, 0, LATEST) == 5


@over("delete records")
def test_records_past_the_end_cannot_be_deleted(
    client: Client, referee: Client, topic: str
) -> None:
    referee.create_topic(topic)
    with pytest.raises(RefusedError) as refused:
        client.delete_records(topic, 0, 99)
    assert refusal(refused) == ErrorCode.OFFSET_OUT_OF_RANGE


@over()
def test_the_cluster_names_its_brokers_and_controller(client: Client, referee: Client) -> None:
    assert client.cluster() == referee.cluster()
    assert client.cluster().controller in client.cluster().brokers


@over("create")
def test_a_created_topic_takes_records_at_once(client: Client, topic: str) -> None:
    client.create_topic(topic, partitions=2)
    assert client.produce(topic, [Record(b"v", partition=1)])[0].partition == 1
    assert client.fetch(topic, 1, (0, 1))[0][0].value == b"v"
