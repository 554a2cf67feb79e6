"""Heartbeats of a query's share group member whose responses are lost."""

from collections.abc import Callable
from typing import Any

from penstock.client.errors import ConnectionFailed
from penstock.errors import KafkaError
from penstock.spark.client.settings import ClientSettings
from penstock.spark.source.share.consumer import SparkShareConsumer
from penstock.wire.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)


class LossyClient:
    """A client and its one connection, on which some responses are lost."""

    def __init__(self, *is_lost: bool) -> None:
        self._is_lost = list(is_lost)
        self.named: list[list[str] | None] = []

    def connection(self, _: object) -> "LossyClient":
        return self

    def call(self, request: ShareGroupHeartbeatRequest, _: object) -> ShareGroupHeartbeatResponse:
        self.named.append(request.subscribed_topic_names)
        if self._is_lost.pop(0):
            raise ConnectionFailed("the broker has closed the connection")
        return ShareGroupHeartbeatResponse(member_id=request.member_id, member_epoch=1)

    def retrying(self, attempt: Callable[[], Any], **_: object) -> Any:
        while True:
            try:
                return attempt()
            except KafkaError:
                if not self._is_lost:
                    raise


def test_after_a_lost_response_the_next_heartbeat_is_a_full_one() -> None:
    """The lost response may have had an assignment, which the coordinator sends only once."""
    consumer = SparkShareConsumer(ClientSettings(()), "billing", ("orders",), 1000)
    client = LossyClient(False, False, True, False, False)
    consumer._client = client  # type: ignore[assignment]
    with consumer._guard:
        for _ in range(4):
            consumer._heartbeat()
    assert client.named == [["orders"], None, None, ["orders"], None]
