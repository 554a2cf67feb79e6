"""Finds the telemetry client of a request, with its matching subscriptions."""

from penstock.broker.context import Context
from penstock.broker.telemetry.clients import TelemetryClient
from penstock.broker.telemetry.subscriptions import subscription_of
from penstock.types import Uuid, uuid_text


def telemetry_client(instance: Uuid, ctx: Context) -> TelemetryClient:
    """The client of the request, with its current subscription."""
    peer, client_id = ctx.peer, ctx.header.client_id or ""
    attributes = {
        "client_instance_id": uuid_text(instance),
        "client_id": client_id,
        "client_software_name": peer.software_name,
        "client_software_version": peer.software_version,
        "client_source_address": peer.host,
        "client_source_port": str(peer.port),
    }
    configured = ctx.services.cluster.image.client_metrics.values()
    subscription = subscription_of(attributes, instance, configured)
    return ctx.services.telemetry.client(instance, client_id, subscription)
