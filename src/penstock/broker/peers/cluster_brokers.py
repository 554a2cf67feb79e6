"""All brokers of a cluster as their controller sees them: this one at hand, others by requests."""

import asyncio
from collections.abc import Collection, Mapping

from penstock.broker.peers.channel import Channel
from penstock.broker.peers.connection import PeerConnection
from penstock.broker.peers.orders import Orders
from penstock.broker.supervision import supervised
from penstock.client.address import Address
from penstock.controller.control_requests import ControlRequest, control_requests
from penstock.controller.controller import Controller
from penstock.controller.state_change import StateChange
from penstock.errors import ErrorCode
from penstock.metadata.image import Broker
from penstock.types import BrokerId, TopicPartition, Uuid
from penstock.wire.messages.leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse
from penstock.wire.messages.stop_replica import StopReplicaRequest, StopReplicaResponse
from penstock.wire.schema import Message

DELIVERY_CHECK_S = 0.01


class ClusterBrokers:
    """Sends each broker what concerns it. Channels end when the office does."""

    def __init__(
        self,
        broker_id: BrokerId,
        own: Orders,
        tasks: asyncio.TaskGroup,
        *,
        listener: str,
        source: str | None,
        heard: set[Address],
        timeout_ms: int,
    ) -> None:
        self._broker_id, self._own, self._tasks = broker_id, own, tasks
        self._listener, self._source, self._heard = listener, source, heard
        self._timeout_ms = timeout_ms
        self._channels: dict[tuple[BrokerId, int], tuple[Channel, asyncio.Task[None]]] = {}
        self.controller: Controller
        """Hears what the brokers answer."""

    async def apply(self, change: StateChange) -> Collection[TopicPartition]:
        alive = {(each.id, each.epoch) for each in change.image.brokers.values()}
        for gone in self._channels.keys() - alive:
            channel, task = self._channels.pop(gone)
            task.cancel()
            channel.forget()
        for broker in change.image.brokers.values():
            if broker.id != self._broker_id:
                wanted = control_requests(change, broker, self._listener)
                if wanted:
                    self._channel(broker).send(wanted)
        failed = await self._own.carry_out(change)
        own = change.image.brokers.get(self._broker_id)
        if failed and own is not None:
            self.controller.replicas_failed(own.id, own.epoch, failed)
        return failed

    async def delivered(self) -> None:
        """Until every broker has answered what it was told so far."""
        while any(not channel.is_idle for channel, _ in self._channels.values()):
            await asyncio.sleep(DELIVERY_CHECK_S)

    def resign(self) -> None:
        """Say nothing more to anybody: another controller does."""
        for _, task in self._channels.values():
            task.cancel()
        self._channels.clear()

    def _channel(self, broker: Broker) -> Channel:
        key = (broker.id, broker.epoch)
        if key not in self._channels:
            endpoint = broker.endpoint(self._listener)
            address = None if endpoint is None else Address(endpoint.host, endpoint.port)
            connection = PeerConnection(
                lambda: address,
                client_id=str(self._broker_id),
                source=self._source,
                heard=self._heard,
            )
            channel = Channel(
                connection,
                lambda order, answer: self._answered(broker, order, answer),
                lambda: self.controller.connection_refused(*key),
                self._timeout_ms,
            )
            sending = supervised(f"speaking to broker {broker.id}", channel.run)
            self._channels[key] = channel, self._tasks.create_task(sending)
        return self._channels[key][0]

    def _answered(self, broker: Broker, order: ControlRequest, answer: Message) -> None:
        if isinstance(order, StopReplicaRequest) and isinstance(answer, StopReplicaResponse):
            deleted = deleted_replicas(order, answer)
            if deleted:
                self.controller.replicas_deleted(broker.id, deleted)
        elif isinstance(order, LeaderAndIsrRequest) and isinstance(answer, LeaderAndIsrResponse):
            failed = failed_replicas(order, answer)
            if failed:
                self.controller.replicas_failed(broker.id, broker.epoch, failed)


def deleted_replicas(
    order: StopReplicaRequest, answer: StopReplicaResponse
) -> list[TopicPartition]:
    """Those that the broker was told to delete and did not fail to."""
    if answer.error_code:
        return []
    kept = {(e.topic_name, e.partition_index) for e in answer.partition_errors if e.error_code}
    return [
        TopicPartition(topic.topic_name, state.partition_index)
        for topic in order.topic_states
        for state in topic.partition_states
        if state.delete_partition and (topic.topic_name, state.partition_index) not in kept
    ]


def failed_replicas(
    order: LeaderAndIsrRequest, answer: LeaderAndIsrResponse
) -> list[TopicPartition]:
    """Those whose directory has failed."""
    names: Mapping[Uuid, str] = {each.topic_id: each.topic_name for each in order.topic_states}
    return [
        TopicPartition(names[topic.topic_id], each.partition_index)
        for topic in answer.topics
        for each in topic.partition_errors
        if each.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    ]
