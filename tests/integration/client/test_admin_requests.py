"""Administrative requests: directories, elections, features, transactions."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

import pytest

from penstock.client.address import parse_addresses
from penstock.client.broker_versions import broker_versions
from penstock.client.cluster import Client
from penstock.client.elections import elect_leaders
from penstock.client.errors import BrokerRefused
from penstock.client.features import describe_features, update_features
from penstock.client.hanging import find_hanging
from penstock.client.log_dirs import LogDirReplica, alter_replica_log_dirs, describe_log_dirs
from penstock.client.metadata import NO_LEADER, PartitionMetadata, TopicMetadata
from penstock.client.offsets import known_ends
from penstock.client.producers import describe_producers
from penstock.client.route import ANY, KeyType, ToCoordinator, ToLeader
from penstock.client.transaction_admin import (
    abort_hanging,
    describe_transaction,
    list_transactions,
)
from penstock.errors import ErrorCode
from penstock.record.build import build_batch, numbered
from penstock.testing.broker import EmbeddedBroker
from penstock.types import BrokerId, LeaderEpoch, TopicPartition, Uuid
from penstock.wire.enums import ElectionType, UpgradeType
from penstock.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from penstock.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

T = TypeVar("T")
BROKER, PARTITION = BrokerId(1), TopicPartition("orders", 0)
HOUR_MS = 3_600_000


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    # Without verification, a batch of a transaction that no coordinator knows gets into the log.
    settings = {"transaction.partition.verification.enable": "false"}
    with EmbeddedBroker(settings=settings) as running:
        running.create_topic("orders", 2)
        yield running


def run(broker: EmbeddedBroker, scenario: Callable[[Client], Awaitable[T]]) -> T:
    async def main() -> T:
        async with Client(parse_addresses(broker.bootstrap), timeout_ms=20_000) as client:
            return await scenario(client)

    return asyncio.run(main())


def test_log_ends_of_missing_partitions_are_left_out(broker: EmbeddedBroker) -> None:
    """A group that has also read a deleted topic can still be shown."""
    others = [TopicPartition("orders", 7), TopicPartition("gone", 0)]
    assert run(broker, lambda client: known_ends(client, [PARTITION, *others])).keys() == {
        PARTITION
    }


def test_log_directories_hold_replicas(broker: EmbeddedBroker) -> None:
    (directory,) = run(broker, lambda client: describe_log_dirs(client, BROKER))
    assert directory.error is None
    assert 0 < directory.usable_bytes <= directory.total_bytes
    assert directory.replicas.keys() >= {PARTITION, TopicPartition("orders", 1)}
    (only,) = run(broker, lambda client: describe_log_dirs(client, BROKER, [PARTITION]))
    assert list(only.replicas) == [PARTITION]
    replica = LogDirReplica(PARTITION, BROKER)
    moved = run(broker, lambda client: alter_replica_log_dirs(client, {replica: only.path}))
    assert moved == {replica: None}
    elsewhere = run(broker, lambda client: alter_replica_log_dirs(client, {replica: "/nowhere"}))
    error = elsewhere[replica]
    assert error is not None
    assert error.code is ErrorCode.LOG_DIR_NOT_FOUND


def test_an_election_returns_a_result_per_partition(broker: EmbeddedBroker) -> None:
    missing = TopicPartition("missing", 0)
    outcomes = run(
        broker,
        lambda client: elect_leaders(client, ElectionType.PREFERRED, [PARTITION, missing]),
    )
    codes = {partition: error and error.code for partition, error in outcomes.items()}
    assert codes == {
        PARTITION: ErrorCode.ELECTION_NOT_NEEDED,
        missing: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    everywhere = run(broker, lambda client: elect_leaders(client, ElectionType.UNCLEAN, None))
    assert not any(everywhere.values())


def test_features_are_described_and_updated(broker: EmbeddedBroker) -> None:
    name = "transaction.version"
    before = run(broker, describe_features).features[name]
    assert (before.low, before.high, before.level) == (0, 2, 2)

    def to(level: int, upgrade: UpgradeType, *, validate_only: bool = False) -> object:
        return run(
            broker,
            lambda client: update_features(
                client, {name: level}, upgrade, validate_only=validate_only
            ),
        )

    assert to(1, UpgradeType.SAFE_DOWNGRADE, validate_only=True) == {name: None}
    assert run(broker, describe_features).features[name].level == 2
    assert to(1, UpgradeType.SAFE_DOWNGRADE) == {name: None}
    assert run(broker, describe_features).features[name].level == 1
    assert to(2, UpgradeType.UPGRADE) == {name: None}
    with pytest.raises(BrokerRefused, match=name):
        to(9, UpgradeType.UPGRADE)


def test_a_broker_reports_its_api_versions(broker: EmbeddedBroker) -> None:
    found = run(broker, lambda client: broker_versions(client, ANY))
    assert {each.api_key for each in found.api_keys} >= {0, 1, 3, 18}


async def hang(client: Client, partition: TopicPartition = PARTITION) -> None:
    """Writes an old batch of a transaction that no coordinator knows."""
    batch = build_batch(
        numbered([(None, b"hanging")], round(time.time() * 1000) - HOUR_MS),
        producer_id=424_242,
        producer_epoch=3,
        base_sequence=0,
        transactional=True,
    )
    data = [PartitionProduceData(index=partition.partition, records=bytes(batch))]
    request = ProduceRequest(
        transactional_id="forgotten",
        acks=-1,
        timeout_ms=10_000,
        topic_data=[TopicProduceData(name="orders", partition_data=data)],
    )
    connection = await client.connection(ToLeader(partition))
    answer = await connection.call(request, ProduceResponse, timeout_ms=10_000, version=9)
    assert answer.responses[0].partition_responses[0].error_code == 0


def test_a_hanging_transaction_is_found_and_aborted(broker: EmbeddedBroker) -> None:
    async def scenario(client: Client) -> None:
        await hang(client)
        now_ms = round(time.time() * 1000)
        assert not await find_hanging(client, [PARTITION], older_than_ms=2 * HOUR_MS, now_ms=now_ms)
        (found,) = await find_hanging(
            client, [PARTITION], older_than_ms=HOUR_MS // 4, now_ms=now_ms
        )
        assert (found.partition, found.producer.id, found.producer.epoch) == (PARTITION, 424_242, 3)
        await abort_hanging(client, PARTITION, found.producer)
        producers = await describe_producers(client, [PARTITION])
        assert [each.transaction_start for each in producers[PARTITION]] == [-1]

    run(broker, scenario)


def test_no_transaction_is_called_hanging_while_a_coordinator_is_missing(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(client: Client) -> None:
        other = TopicPartition("orders", 1)
        await hang(client, other)
        leaderless = PartitionMetadata(7, NO_LEADER, LeaderEpoch(0), (BROKER,), (), ())
        topic = TopicMetadata("__transaction_state", Uuid(b"t" * 16), True, {7: leaderless})

        async def existing(_: object) -> list[TopicMetadata]:
            return [topic]

        monkeypatch.setattr(client, "existing_topics", existing)
        now_ms = round(time.time() * 1000)
        with pytest.raises(BrokerRefused, match="__transaction_state-7"):
            await find_hanging(client, [other], older_than_ms=HOUR_MS // 4, now_ms=now_ms)

    run(broker, scenario)


def test_transactional_ids_are_listed_and_described(broker: EmbeddedBroker) -> None:
    async def scenario(client: Client) -> None:
        made = await client.call(
            InitProducerIdRequest(transactional_id="bank", transaction_timeout_ms=60_000),
            InitProducerIdResponse,
            to=ToCoordinator("bank", KeyType.TRANSACTION),
        )
        (listed,) = await list_transactions(client, states=["Empty"], pattern="ban.*")
        assert (listed.id, listed.producer_id, listed.state) == ("bank", made.producer_id, "Empty")
        described = await describe_transaction(client, "bank")
        assert (described.coordinator, described.state) == (BROKER, "Empty")
        assert described.timeout_ms == 60_000
        assert described.partitions == ()
        with pytest.raises(BrokerRefused, match="TRANSACTIONAL_ID_NOT_FOUND"):
            await describe_transaction(client, "nobody")

    run(broker, scenario)
