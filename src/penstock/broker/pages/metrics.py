"""The metrics of `/metrics`: one table from name to reader, under the names that dashboards use.

The names are those of Kafka's JMX exporter (`kafka_server_…`), of kafka_exporter (`kafka_topic_…`,
`kafka_consumergroup_…`) and our own (`penstock_…`). Readers use the counters of the broker's parts;
nothing is stored for metrics alone.
"""

from penstock.broker.context import Services
from penstock.broker.net.routes import Routes
from penstock.broker.net.server import Server
from penstock.broker.pages.client_metrics import client_metrics
from penstock.broker.pages.group_metrics import Elsewhere, group_metrics
from penstock.broker.pages.log_metrics import log_metrics
from penstock.broker.pages.loop_lag import LoopLag
from penstock.broker.pages.process_metrics import process_metrics
from penstock.broker.pages.quota_metrics import quota_metrics
from penstock.broker.pages.replica_metrics import replica_metrics
from penstock.broker.pages.request_metrics import request_metrics
from penstock.broker.pages.server_metrics import server_metrics
from penstock.broker.pages.share_groups import share_metrics
from penstock.broker.pages.topic_metrics import topic_metrics
from penstock.clock import Clock
from penstock.http.prometheus import Metric


def table(
    services: Services,
    server: Server,
    routes: Routes,
    loop: LoopLag,
    clock: Clock,
    elsewhere: Elsewhere,
) -> dict[str, Metric]:
    """The table for one page view: `Shared` values are computed once per view."""
    partitions = services.replicas.partitions
    return {
        **topic_metrics(partitions),
        **request_metrics(routes),
        **replica_metrics(services),
        **log_metrics(partitions.store),
        **server_metrics(services, server),
        **quota_metrics(services.quotas),
        **process_metrics(loop),
        **group_metrics(services, clock, elsewhere),
        **share_metrics(services),
        **client_metrics(services.telemetry, clock),
    }
