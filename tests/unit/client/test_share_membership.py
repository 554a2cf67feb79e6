"""The heartbeats of a share group member."""

import pytest

from penstock.client.errors import BrokerRefused
from penstock.client.membership.share import RETRY_ON, ShareMember
from penstock.errors import ErrorCode
from penstock.wire.messages.share_group_heartbeat import ShareGroupHeartbeatResponse

ACCEPTED = ShareGroupHeartbeatResponse(member_epoch=3)


def test_topics_are_sent_until_a_response_arrives() -> None:
    member = ShareMember("billing", "m", ("orders",))
    for _ in range(2):  # the first response is lost
        assert member.heartbeat().subscribed_topic_names == ["orders"]
    member.received(ACCEPTED)
    assert member.heartbeat().subscribed_topic_names == ["orders"], "its assignment was not taken"
    member.received(ACCEPTED)
    member.taken()
    sent = member.heartbeat()
    assert (sent.member_epoch, sent.subscribed_topic_names) == (3, None)


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH])
def test_a_member_that_was_removed_joins_again_under_its_id(code: ErrorCode) -> None:
    member = ShareMember("billing", "m", ("orders",))
    first = member.heartbeat()
    member.received(ACCEPTED)
    member.taken()
    member.heartbeat()
    with pytest.raises(BrokerRefused, match="share group billing"):
        member.received(ShareGroupHeartbeatResponse(error_code=code))
    assert code in RETRY_ON
    assert member.heartbeat() == first


def test_other_errors_keep_the_epoch() -> None:
    member = ShareMember("billing", "m", ("orders",))
    member.received(ACCEPTED)
    with pytest.raises(BrokerRefused):
        member.received(ShareGroupHeartbeatResponse(error_code=ErrorCode.NOT_COORDINATOR))
    assert member.heartbeat().member_epoch == 3
    assert member.leave().member_epoch == -1
