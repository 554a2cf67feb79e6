"""The pages of a broker by path, and the background loops that they need."""

import asyncio
from collections.abc import Awaitable, Callable

from penstock.broker.context import Services
from penstock.broker.net.routes import Routes
from penstock.broker.net.server import Server
from penstock.broker.pages.group_metrics import partitions_elsewhere
from penstock.broker.pages.loop_lag import LoopLag
from penstock.broker.pages.metrics import table as metrics_table
from penstock.broker.pages.named_page import named_page
from penstock.broker.pages.replicas import fetches, replicas
from penstock.broker.pages.segments import segments
from penstock.broker.pages.share_groups import records_in_flight
from penstock.broker.peers.connections import PeerConnections
from penstock.broker.peers.log_ends import LogEnds
from penstock.clock import Clock
from penstock.http.health import healthz, readyz
from penstock.http.prometheus import metrics
from penstock.http.server import Handler


class BrokerPages:
    """`table` is for the HTTP server; `loops` run in the background."""

    def __init__(
        self,
        services: Services,
        server: Server,
        routes: Routes,
        peers: PeerConnections,
        tasks: asyncio.TaskGroup,
        clock: Clock,
    ) -> None:
        logs, partitions = services.replicas.partitions.store, services.replicas.partitions
        groups = services.coordination.groups
        ends = LogEnds(tasks, peers.to, lambda: partitions_elsewhere(services), clock)
        loop = LoopLag(clock)
        self.loops: dict[str, Callable[[], Awaitable[None]]] = {"loop lag": loop.run}
        if services.listeners.clustered:
            self.loops["log ends"] = ends.run
        self.table: dict[tuple[str, str], Handler] = {
            ("GET", "/healthz"): healthz,
            ("GET", "/readyz"): readyz({"log directories": lambda: bool(logs.online)}),
            ("GET", "/groups/rebalances"): named_page("group", groups.rebalances),
            ("GET", "/groups/activity"): named_page("group", groups.activity),
            ("GET", "/groups/in-flight"): named_page(
                "group", lambda group: records_in_flight(services, clock, group)
            ),
            ("GET", "/replicas"): named_page(
                "topic", lambda topic: replicas(services.broker_id, partitions, topic)
            ),
            ("GET", "/segments"): named_page(
                "topic", lambda topic: segments(services.broker_id, partitions, topic)
            ),
            ("GET", "/fetches"): named_page(
                "topic", lambda topic: fetches(partitions, services.waiters, topic)
            ),
            ("GET", "/metrics"): metrics(
                lambda: metrics_table(services, server, routes, loop, clock, ends.get)
            ),
        }
