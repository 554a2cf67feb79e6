"""Runs the console: the HTTP server, and the cluster watch beside it."""

import asyncio
import os
import socket
import ssl
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import uvicorn
from starlette.types import ASGIApp

from penstock.client.cluster import Client
from penstock.clock import SystemClock
from penstock.config.http_address import HttpAddress
from penstock.console.app import console
from penstock.console.audit import Audit
from penstock.console.jobs import Jobs
from penstock.console.mask import Masks
from penstock.console.messages.service import Messages
from penstock.console.protocol import BoundedProtocol
from penstock.console.subjects import follow_subjects
from penstock.console.watch import ClusterWatch
from penstock.http.access import HttpAccess
from penstock.http.server import cannot_listen
from penstock.record_view.registry import SchemaRegistry

if TYPE_CHECKING:
    from penstock.console.oidc.provider import Provider

LAST_WORDS_S = 2
"""How long a stopping console waits for connections; browsers that follow a topic keep theirs."""

PARENT_S = 1.0


def bound(listen: HttpAddress) -> socket.socket:
    family = socket.AF_INET6 if ":" in listen.host else socket.AF_INET
    try:
        return socket.create_server(listen, family=family)
    except OSError as error:
        raise cannot_listen("--listen", listen.host, listen.port, error) from None


async def serve_console(
    client: Client,
    sock: socket.socket,
    access: HttpAccess,
    on_ready: Callable[[str], object],
    *,
    audit_log: Path | None = None,
    tls: ssl.SSLContext | None = None,
    parent: int | None = None,
    registry: SchemaRegistry | None = None,
    masks: Masks | None = None,
    projects: Sequence[Path] = (),
    provider: "Provider | None" = None,
) -> None:
    """Serve until SIGINT or SIGTERM, or until the process `parent` has ended."""
    host, port = sock.getsockname()[:2]
    clock = SystemClock()
    watch, jobs = ClusterWatch(client, clock, registry, projects, masks), Jobs(clock)
    messages = Messages(client, clock, registry, masks)
    audit = Audit(audit_log, clock)
    app = console(
        watch, access, audit=audit, jobs=jobs, clock=clock, messages=messages, provider=provider
    )
    config = server_config(app)
    config.load()
    config.ssl = tls  # uvicorn itself accepts only files
    scheme = "http" if tls is None else "https"
    server = uvicorn.Server(config)
    async with messages.client, asyncio.TaskGroup() as tasks:
        beside = [
            tasks.create_task(each) for each in (watch.run(), jobs.run(), follow_subjects(watch))
        ]
        if parent is not None:
            beside.append(tasks.create_task(end_with(parent, server)))
        on_ready(f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}")
        await server.serve(sockets=[sock])
        for each in beside:
            each.cancel()


def server_config(app: ASGIApp) -> uvicorn.Config:
    """Proxy headers are ignored: any local client could fake addresses with them, and so evade the
    login limit and write false addresses into the audit log.
    """
    return uvicorn.Config(
        app,
        http=BoundedProtocol,
        ws="none",
        log_level="warning",
        lifespan="off",
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=LAST_WORDS_S,
    )


async def end_with(parent: int, server: uvicorn.Server) -> None:
    while os.getppid() == parent:
        await asyncio.sleep(PARENT_S)
    server.should_exit = True
