"""Fixtures that the client's tests share."""

from uuid import uuid4

import pytest

from peers.kafka import KafkaCluster
from penstock.client.admin import NewTopic, create_topic
from penstock.client.cluster import Client
from support.commands.client_runs import has_partitions, run


@pytest.fixture
def topic(kafka: KafkaCluster) -> str:
    """A topic for this test alone, with three partitions."""
    name = f"client-{uuid4().hex[:8]}"

    async def create(client: Client) -> None:
        await create_topic(client, NewTopic(name=name, partitions=3))
        await has_partitions(client, name, 3)

    run(kafka, create)
    return name
