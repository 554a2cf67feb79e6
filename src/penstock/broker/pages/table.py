"""The pages of a broker, by path, and the background work that they need."""

import asyncio
from collections.abc import Awaitable, Callable

from penstock.broker.context import Services
from penstock.broker.net.dispatch import Routes
from penstock.broker.net.server import Server
from penstock.broker.pages.group_metrics import group_metrics, partitions_elsewhere
from penstock.broker.pages.loop_lag import LoopLag
from penstock.broker.pages.metrics import table as metrics_table
from penstock.broker.pages.rebalances import rebalances
from penstock.broker.pages.replicas import replicas
from penstock.broker.peers.connections import PeerConnections
from penstock.broker.peers.log_ends import LogEnds
from penstock.clock import Clock
from penstock.http.health import healthz, readyz
from penstock.http.prometheus import metrics
from penstock.http.server import Handler


class Pages:
    """`table` is for the HTTP server; `loops` run beside it."""

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
        ends = LogEnds(tasks, peers.to, lambda: partitions_elsewhere(services))
        lag = LoopLag(clock)
        self.loops: dict[str, Callable[[], Awaitable[None]]] = {"loop lag": lag.run}
        if services.listeners.clustered:
            self.loops["log ends"] = ends.run
        self.table: dict[tuple[str, str], Handler] = {
            ("GET", "/healthz"): healthz,
            ("GET", "/readyz"): readyz({"log directories": lambda: bool(logs.online)}),
            ("GET", "/groups/rebalances"): rebalances(services.coordination.groups),
            ("GET", "/replicas"): replicas(services.broker_id, partitions),
            ("GET", "/metrics"): metrics(
                metrics_table(services, server, routes, lag)
                | group_metrics(services, clock, ends.get)
            ),
        }
