"""Sends the controller's changes to all brokers: directly to its own, by requests to others."""

import asyncio
from collections.abc import Callable, Collection, Mapping

from penstock.broker.peers.connection import PeerConnection
from penstock.broker.peers.control_plane import ControlPlane
from penstock.broker.peers.controller_channel import ControllerChannel
from penstock.broker.peers.supervision import supervised
from penstock.client.address import Address
from penstock.client.security import ClientSecurity
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

USABLE = frozenset({ErrorCode.NONE, ErrorCode.STALE_CONTROLLER_EPOCH})
"""Error codes for a replica with a working log: it leads or follows, or did so before."""


class ClusterBrokers:
    """Sends each broker the changes that concern it. Channels close when the controller resigns."""

    def __init__(
        self,
        broker_id: BrokerId,
        own: ControlPlane,
        tasks: asyncio.TaskGroup,
        *,
        listener: str,
        source: str | None,
        reached: set[Address],
        security: Callable[[], ClientSecurity],
        timeout_ms: int,
    ) -> None:
        self._security = security
        self._broker_id, self._own, self._tasks = broker_id, own, tasks
        self._listener, self._source, self._reached = listener, source, reached
        self._timeout_ms = timeout_ms
        self._channels: dict[
            tuple[BrokerId, int], tuple[ControllerChannel, asyncio.Task[None]]
        ] = {}
        self.controller: Controller
        """Receives the results that brokers report in their responses."""

    async def apply(self, change: StateChange) -> Collection[TopicPartition]:
        alive = {(each.id, each.epoch) for each in change.image.brokers.values()}
        for gone in self._channels.keys() - alive:
            channel, task = self._channels.pop(gone)
            task.cancel()
            channel.forget()
        for broker in change.image.brokers.values():
            if broker.id != self._broker_id:
                requests = control_requests(change, broker, self._listener)
                if requests:
                    self._channel(broker).send(requests)
        failed = await self._own.apply_own(change)
        own = change.image.brokers.get(self._broker_id)
        if own is not None:
            if failed:
                self.controller.replicas_failed(own.id, own.epoch, failed)
            usable = [
                each.topic_partition
                for each in change.partitions
                if own.id in each.state.replicas and each.topic_partition not in failed
            ]
            self.controller.replicas_usable(own.id, own.epoch, usable)
        return failed

    async def delivered(self) -> None:
        """Wait until every broker has answered all requests so far."""
        while any(not channel.is_idle for channel, _ in self._channels.values()):
            await asyncio.sleep(DELIVERY_CHECK_S)

    def resign(self) -> None:
        """Close all channels: another controller takes over."""
        for _, task in self._channels.values():
            task.cancel()
        self._channels.clear()

    def _channel(self, broker: Broker) -> ControllerChannel:
        key = (broker.id, broker.epoch)
        if key not in self._channels:
            endpoint = broker.endpoint(self._listener)
            address = None if endpoint is None else Address(endpoint.host, endpoint.port)
            connection = PeerConnection(
                lambda: address,
                client_id=str(self._broker_id),
                source=self._source,
                reached=self._reached,
                security=self._security,
            )
            channel = ControllerChannel(
                connection,
                lambda request, response: self._on_response(broker, request, response),
                lambda: self.controller.connection_refused(*key),
                self._timeout_ms,
            )
            sending = supervised(f"control requests to broker {broker.id}", channel.run)
            self._channels[key] = channel, self._tasks.create_task(sending)
        return self._channels[key][0]

    def _on_response(self, broker: Broker, request: ControlRequest, response: Message) -> None:
        if isinstance(request, StopReplicaRequest) and isinstance(response, StopReplicaResponse):
            deleted, undeleted = stopped_replicas(request, response)
            if deleted:
                self.controller.replicas_deleted(broker.id, deleted)
            if undeleted:
                self.controller.replicas_undeleted(broker.id, undeleted)
        elif isinstance(request, LeaderAndIsrRequest) and isinstance(
            response, LeaderAndIsrResponse
        ):
            failed, usable = answered_replicas(request, response)
            if failed:
                self.controller.replicas_failed(broker.id, broker.epoch, failed)
            self.controller.replicas_usable(broker.id, broker.epoch, usable)


def stopped_replicas(
    request: StopReplicaRequest, response: StopReplicaResponse
) -> tuple[list[TopicPartition], list[TopicPartition]]:
    """Replicas that the broker has deleted, and replicas that it could not delete."""
    codes = {(e.topic_name, e.partition_index): e.error_code for e in response.partition_errors}
    deleted, undeleted = [], []
    for topic in [] if response.error_code else request.topic_states:
        for state in topic.partition_states:
            topic_partition = TopicPartition(topic.topic_name, state.partition_index)
            code = codes.get(topic_partition, ErrorCode.NONE)
            if state.delete_partition and code == ErrorCode.NONE:
                deleted.append(topic_partition)
            elif state.delete_partition and code == ErrorCode.KAFKA_STORAGE_ERROR:
                undeleted.append(topic_partition)
    return deleted, undeleted


def answered_replicas(
    request: LeaderAndIsrRequest, response: LeaderAndIsrResponse
) -> tuple[list[TopicPartition], list[TopicPartition]]:
    """Replicas without a usable log, and replicas with one."""
    names: Mapping[Uuid, str] = {each.topic_id: each.topic_name for each in request.topic_states}
    failed, usable = [], []
    for topic in response.topics:
        for each in topic.partition_errors:
            topic_partition = TopicPartition(names[topic.topic_id], each.partition_index)
            if each.error_code == ErrorCode.KAFKA_STORAGE_ERROR:
                failed.append(topic_partition)
            elif each.error_code in USABLE:
                usable.append(topic_partition)
    return failed, usable
