"""Checks altered settings that name this broker's keys and certificates (KIP-226).

Clients send alterations of a broker to that broker. It checks the files before the controller
stores their names: an unusable one is refused, and the old one stays in use.
"""

from collections.abc import Mapping

from penstock.broker.context import Services
from penstock.config.kafka_message import kafka_message
from penstock.config.listener_security import is_alterable
from penstock.config.resource_type import ConfigResourceType
from penstock.errors import ConfigError, InvalidRequest


async def check_own_stores(
    kind: int, name: str, given: Mapping[str, str | None], services: Services
) -> None:
    """Raises `InvalidRequest` if this broker could not use the named files."""
    is_own = kind == ConfigResourceType.BROKER and name == str(services.broker_id)
    stores = {each: text for each, text in given.items() if is_alterable(each) and text is not None}
    if not is_own or not stores:
        return
    before = services.cluster.layers.dynamic
    try:
        await services.check_stores({**before, **stores})
    except ConfigError as error:
        raise InvalidRequest(kafka_message(error)) from error
