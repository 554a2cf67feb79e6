"""Calls the controller: directly if it is this broker, otherwise by requests."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import TypeVar

from penstock.broker.peers.connection import PeerConnection
from penstock.client.address import Address
from penstock.client.errors import ConnectionFailed, RequestTimedOut, check
from penstock.client.security import ClientSecurity
from penstock.controller.controller import Controller
from penstock.controller.producer_ids import ProducerIds
from penstock.controller.topics import TopicSpec
from penstock.errors import ErrorCode, KafkaError
from penstock.metadata.image import ClusterImage
from penstock.types import BrokerId, ProducerId
from penstock.wire.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from penstock.wire.messages.controlled_shutdown import ControlledShutdownResponse
from penstock.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from penstock.wire.schema import Message

logger = logging.getLogger(__name__)

R = TypeVar("R", bound=Message)

RETRY_S = 0.05


class ControllerLink:
    """Calls the active controller, and retries during elections. Belongs to the event loop."""

    def __init__(
        self,
        broker_id: BrokerId,
        controller: Controller,
        image: Callable[[], ClusterImage],
        *,
        listener: str,
        source: str | None,
        reached: set[Address],
        security: Callable[[], ClientSecurity],
        broker_epoch: Callable[[], int],
        timeout_ms: int,
    ) -> None:
        self._timeout_ms = timeout_ms
        self._broker_id, self._controller = broker_id, controller
        self._image, self._listener, self._broker_epoch = image, listener, broker_epoch
        self._connection = PeerConnection(
            self.address,
            client_id=str(broker_id),
            source=source,
            reached=reached,
            security=security,
        )

    def address(self) -> Address | None:
        """The address of the controller that the image names."""
        image = self._image()
        broker = image.brokers.get(image.controller)
        endpoint = None if broker is None else broker.endpoint(self._listener)
        return None if endpoint is None else Address(endpoint.host, endpoint.port)

    def controller_changed(self) -> None:
        """Send unanswered requests to the new controller."""
        self._connection.drop_if_moved()

    async def call(self, request: Message, answer: type[R], *, version: int | None = None) -> R:
        """The controller's response. Retries while there is no controller or it is changing."""
        try:
            async with asyncio.timeout(self._timeout_ms / 1000):
                while True:
                    response = await self._attempt(request, answer, version)
                    if response is not None:
                        return response
                    await asyncio.sleep(RETRY_S)
        except TimeoutError:
            raise RequestTimedOut(f"no controller answered within {self._timeout_ms} ms") from None

    async def _attempt(self, request: Message, answer: type[R], version: int | None) -> R | None:
        """The response; None if the broker was not reached, or is not the controller (yet)."""
        if self._image().controller == self._broker_id and not self._controller.is_active:
            return None
        try:
            response = await self._connection.call(
                request, answer, timeout_ms=self._timeout_ms, version=version
            )
        except (ConnectionFailed, RequestTimedOut) as error:
            logger.debug("cannot reach the controller: %s", error)
            return None
        return None if says_not_controller(response) else response

    async def create_topics(self, news: Sequence[TopicSpec]) -> list[KafkaError | None]:
        """For each topic None if it was created, otherwise the error."""
        if self._controller.is_active:
            made = await self._controller.create_topics(news)
            return [each if isinstance(each, KafkaError) else None for each in made]
        request = CreateTopicsRequest(topics=[_creatable(new) for new in news], timeout_ms=30_000)
        response = await self.call(request, CreateTopicsResponse)
        by_name = {each.name: each for each in response.topics}
        return [_error(by_name[new.name].error_code, new.name) for new in news]

    async def next_producer_id_block(self) -> ProducerIds:
        if self._controller.is_active:
            return await self._controller.next_producer_id_block()
        request = AllocateProducerIdsRequest(
            broker_id=self._broker_id, broker_epoch=self._broker_epoch()
        )
        block = await self.call(request, AllocateProducerIdsResponse)
        check(block.error_code, "producer ids")
        start = block.producer_id_start
        return ProducerIds(ProducerId(start), ProducerId(start + block.producer_id_len))


def says_not_controller(response: Message) -> bool:
    """Whether the response, or any of its items, has the error of a broker that is not the
    controller.
    """
    if isinstance(response, ControlledShutdownResponse):
        return response.error_code == ErrorCode.STALE_CONTROLLER_EPOCH
    if getattr(response, "error_code", 0) == ErrorCode.NOT_CONTROLLER:
        return True
    return any(
        getattr(each, "error_code", 0) == ErrorCode.NOT_CONTROLLER
        for name in ("topics", "results", "responses")
        for each in getattr(response, name, None) or ()
    )


def _creatable(new: TopicSpec) -> CreatableTopic:
    return CreatableTopic(
        name=new.name,
        num_partitions=new.num_partitions,
        replication_factor=new.replication_factor,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=list(replicas))
            for index, replicas in new.assignments
        ],
        configs=[CreatableTopicConfig(name=n, value=v) for n, v in new.configs.items()],
    )


def _error(code: int, name: str) -> KafkaError | None:
    try:
        check(code, f"topic {name}")
    except KafkaError as error:
        return error
    return None
