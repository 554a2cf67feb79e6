"""Following a topic ends with the session of the user who started it."""

import asyncio
from pathlib import Path
from typing import Any

from penstock.client.address import Address
from penstock.client.admin import NewTopic, create_topic
from penstock.client.cluster import Client
from penstock.clock import SystemClock
from penstock.console.app import console
from penstock.console.messages.service import Messages
from penstock.console.watch import ClusterWatch
from penstock.http.access import HttpAccess, token_hash
from penstock.testing.broker import EmbeddedBroker
from penstock.testing.clock import ManualClock


def test_a_tail_ends_when_its_user_is_removed(tmp_path: Path) -> None:
    clock, users = ManualClock(1_000_000), tmp_path / "users"
    users.write_text(f"bob operator {token_hash('t')}\nalice admin {token_hash('a')}")

    async def follow(bootstrap: str) -> bytes:
        host, _, port = bootstrap.partition(":")
        client = Client([Address(host, int(port))])
        messages = Messages(client, clock)
        async with client, messages.client:
            await create_topic(client, NewTopic(name="orders", partitions=1))
            watch = ClusterWatch(client, SystemClock())
            await watch.look()
            access = HttpAccess(users, clock=clock)
            app = console(watch, access, clock=clock, messages=messages)
            parts, begun = list[bytes](), asyncio.Event()

            async def receive() -> dict[str, Any]:
                await asyncio.Event().wait()
                raise AssertionError

            async def send(message: Any) -> None:
                parts.append(message.get("body", b""))
                if b"id: " in parts[-1]:
                    begun.set()

            scope = {
                "type": "http",
                "http_version": "1.1",
                "method": "GET",
                "scheme": "http",
                "path": "/api/v1/topics/orders/tail",
                "query_string": b"",
                "root_path": "",
                "headers": [(b"host", b"127.0.0.1"), (b"authorization", b"Bearer t")],
                "client": ("127.0.0.1", 1),
                "server": ("127.0.0.1", 8080),
            }
            async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
                tasks.create_task(app(scope, receive, send))
                await begun.wait()
                users.write_text(f"alice admin {token_hash('a')}\n")
                clock.advance(2_000)
            return b"".join(parts)

    with EmbeddedBroker() as broker:
        assert b'event: failed\ndata: "log in again"' in asyncio.run(follow(broker.bootstrap))
