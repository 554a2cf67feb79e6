"""The controller mutation quota for topics that metadata requests create."""

from penstock.errors import ErrorCode
from penstock.testing.broker import EmbeddedBroker
from penstock.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from penstock.wire.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from penstock.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from support.brokers.wire_link import WireLink

RATE, PARTITIONS, TOPICS = 1.0, 2, 8
"""Eleven seconds' worth of partitions can be saved up."""


def test_topics_created_by_metadata_requests_are_charged_and_throttled() -> None:
    settings = {"num.partitions": str(PARTITIONS), "auto.create.topics.enable": "true"}
    with EmbeddedBroker(settings=settings) as broker, WireLink(broker.bootstrap) as client:
        limit = OpData("controller_mutation_rate", RATE, remove=False)
        everybody = EntryData(entity=[EntityData("user", None)], ops=[limit])
        client.ask(AlterClientQuotasRequest(entries=[everybody]))
        names = [MetadataRequestTopic(name=f"t{at}") for at in range(TOPICS)]
        response = client.ask(MetadataRequest(topics=names, allow_auto_topic_creation=True), 9)
        assert isinstance(response, MetadataResponse)
        assert {each.error_code for each in response.topics} == {0}
        owed = PARTITIONS * TOPICS - 11 * RATE
        assert owed - 1 < response.throttle_time_ms / 1000 * RATE <= owed
        with WireLink(broker.bootstrap) as other:  # the same user
            new = CreatableTopic(name="more", num_partitions=1, replication_factor=1)
            refused = other.ask(CreateTopicsRequest(topics=[new]), 7)
            assert isinstance(refused, CreateTopicsResponse)
            assert refused.topics[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
