"""The transaction settings of a broker, as a client experiences them."""

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from clients.referee import Referee
from peers.penstock import PenstockBroker
from peers.process import wait_until

WAIT_S = 20
STATE = "__transaction_state"


def transactional(bootstrap: str, **settings: str | int) -> Producer:
    return Producer(
        {"bootstrap.servers": bootstrap, "transactional.id": "kept", "log_level": 0, **settings}
    )


def write(producer: Producer, topic: str) -> None:
    producer.begin_transaction()
    producer.produce(topic, "kept", partition=0)
    producer.commit_transaction(WAIT_S)


@pytest.mark.row("A151")
def test_the_state_topic_is_created_as_the_settings_say(topic: str) -> None:
    settings = {
        "num.partitions": "7",
        "segment.bytes": "1048576",
        "min.isr": "1",
        "replication.factor": "1",
    }
    options = [f"--set=transaction.state.log.{name}={value}" for name, value in settings.items()]
    with PenstockBroker(*options) as broker:
        producer = transactional(broker.bootstrap)
        producer.init_transactions(WAIT_S)
        write(producer, topic)
        assert len(Referee(broker.bootstrap).partitions(STATE)) == 7
        resource = ConfigResource(ResourceType.TOPIC, STATE)
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        (described,) = admin.describe_configs([resource]).values()
        found = {name: entry.value for name, entry in described.result(WAIT_S).items()}
        assert found["segment.bytes"] == "1048576"
        assert found["min.insync.replicas"] == "1"
        assert found["cleanup.policy"] == "compact"


@pytest.mark.row("A111")
def test_the_state_topic_has_fifty_partitions_by_default(topic: str) -> None:
    with PenstockBroker() as broker:
        producer = transactional(broker.bootstrap)
        producer.init_transactions(WAIT_S)
        write(producer, topic)
        assert len(Referee(broker.bootstrap).partitions(STATE)) == 50


def refused(bootstrap: str, timeout_ms: int) -> KafkaError:
    producer = transactional(bootstrap, **{"transaction.timeout.ms": timeout_ms})
    with pytest.raises(KafkaException) as failed:
        producer.init_transactions(WAIT_S)
    error: KafkaError = failed.value.args[0]
    return error


@pytest.mark.row("A114", "A151")
def test_a_timeout_above_the_brokers_limit_is_refused() -> None:
    limit = 5000
    with PenstockBroker(f"--set=transaction.max.timeout.ms={limit}") as broker:
        error = refused(broker.bootstrap, limit + 1)
        assert error.code() == KafkaError.INVALID_TRANSACTION_TIMEOUT
        transactional(broker.bootstrap, **{"transaction.timeout.ms": limit}).init_transactions(5)
    with PenstockBroker() as broker:
        quarter_hour = 15 * 60 * 1000
        error = refused(broker.bootstrap, quarter_hour + 1)
        assert error.code() == KafkaError.INVALID_TRANSACTION_TIMEOUT
        transactional(
            broker.bootstrap, **{"transaction.timeout.ms": quarter_hour}
        ).init_transactions(5)


@pytest.mark.row("A114", "A151")
def test_an_idle_transactional_id_expires(topic: str) -> None:
    soon = "transaction.remove.expired.transaction.cleanup.interval.ms=50"
    with PenstockBroker("--set=transactional.id.expiration.ms=2000", f"--set={soon}") as broker:
        producer = transactional(broker.bootstrap)
        producer.init_transactions(WAIT_S)
        write(producer, topic)
        end = Referee(broker.bootstrap)
        (at,) = [number for number in range(50) if end.offset(STATE, number, -1)]

        def has_tombstone() -> bool:
            last = end.offset(STATE, at, -1) - 1
            (records,) = end.fetch(STATE, at, (last, 1))
            return records[0].value is None

        wait_until(has_tombstone, WAIT_S, "the id to be forgotten")
        with pytest.raises(KafkaException) as failed:
            write(producer, topic)
        assert failed.value.args[0].code() in {
            KafkaError.INVALID_PRODUCER_ID_MAPPING,
            KafkaError._FENCED,
        }
