"""What the console shows of a share group: which member holds which record, and for how long."""

import asyncio
import json
from urllib.parse import quote

from penstock.client.address import parse_addresses
from penstock.client.cluster import Client
from penstock.clock import SystemClock
from penstock.console.app import console
from penstock.console.messages.service import Messages
from penstock.console.watch import ClusterWatch
from penstock.http.access import HttpAccess
from penstock.testing.broker import EmbeddedBroker
from support.brokers.wire_link import WireLink
from support.console_app import LOCAL, answered
from support.groups.share_member import (
    ACCEPT,
    RELEASE,
    ShareMember,
    configure_group,
    make_topic,
    produce_keys,
)

SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
}
NAME = "jobs"


async def reported(bootstrap: str) -> tuple[list[dict[str, object]], str]:
    """The same facts by REST, and on the page."""
    async with Client(parse_addresses(bootstrap)) as client:
        watch, messages = ClusterWatch(client, SystemClock()), Messages(client, SystemClock())
        async with messages.client:
            await watch.look()
            app = console(watch, HttpAccess(None), messages=messages)
            by_rest = await answered(app, f"GET /api/v1/group/in-flight?group={NAME}", LOCAL)
            page = await answered(app, f"GET /group?group={quote(NAME)}", LOCAL)
    return json.loads(by_rest.body), page.body.decode()


def test_records_in_flight_have_an_owner_deliveries_and_time_left() -> None:
    with EmbeddedBroker(settings=SETTINGS) as broker:
        with WireLink(broker.bootstrap) as link:
            make_topic(link, NAME)
            settings = {
                "share.auto.offset.reset": "earliest",
                "penstock.share.redelivery.backoff.ms": "3600000",
                "penstock.share.redelivery.backoff.max.ms": "3600000",
            }
            configure_group(link, NAME, settings)
            produce_keys(link, NAME, [b"k%d" % n for n in range(4)])
        member = ShareMember(broker.bootstrap, NAME, "m", NAME)
        member.join()
        assert member.acquired() == [(0, 3, 1)]
        member.acknowledge((0, 0, ACCEPT), (3, 3, RELEASE))
        (held, waiting), page = asyncio.run(reported(broker.bootstrap))
        member.close()
    assert (held["first"], held["last"], held["state"]) == (1, 2, "acquired")
    assert (held["member"], held["deliveries"]) == (member.name, 1)
    assert isinstance(held["lock_ms"], int)
    assert 0 < held["lock_ms"] <= 30_000
    assert (waiting["first"], waiting["state"]) == (3, "available")
    assert "<h2>Records in flight</h2>" in page
    assert f"<td>acquired</td><td>1</td><td>{member.name}</td>" in page
    assert "invisible for 60 min" in page
