"""The few services that a connection needs, for tests without a broker."""

from typing import cast

from penstock.broker.cluster import Cluster
from penstock.broker.context import Listeners, Services
from penstock.broker.quotas.client_quotas import ClientQuotas
from penstock.clock import SystemClock
from penstock.config.quota import QuotaConfig
from penstock.metadata.client_entity import ClientEntity
from penstock.metadata.image import ClusterImage, Configs
from penstock.types import BrokerId


class FewServices:
    """Has only the services declared here."""

    listeners = Listeners(frozenset(), clustered=False, inter_broker_listener="")

    def __init__(self, quotas: dict[ClientEntity, Configs] | None = None) -> None:
        image = ClusterImage(client_configs=quotas or {})
        cluster = Cluster(BrokerId(0), {}, image)
        self.quotas = ClientQuotas(cluster, QuotaConfig(), SystemClock().monotonic_ms)

    def is_broker(self, _peer: object) -> bool:
        return False


def few_services(quotas: dict[ClientEntity, Configs] | None = None) -> Services:
    return cast("Services", FewServices(quotas))
