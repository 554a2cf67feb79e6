"""The few services that a connection needs, for tests without a broker."""

from typing import cast

from penstock.broker.context import Listeners, Services
from penstock.broker.quotas.client_quotas import ClientQuotas
from penstock.clock import SystemClock
from penstock.config.quota import QuotaConfig
from penstock.metadata.client_entity import ClientEntity
from penstock.metadata.image import Configs


class FewServices:
    """Has only the services declared here."""

    listeners = Listeners(frozenset(), clustered=False, inter_broker_listener="")

    def __init__(self, quotas: dict[ClientEntity, Configs] | None = None) -> None:
        self.quotas = ClientQuotas(quotas or {}, QuotaConfig(), SystemClock().monotonic_ms)

    def is_broker(self, _peer: object) -> bool:
        return False


def few_services(quotas: dict[ClientEntity, Configs] | None = None) -> Services:
    return cast("Services", FewServices(quotas))
