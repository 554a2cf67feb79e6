"""Brokers whose log directories are all cordoned get no new replicas (KIP-1066). Pure."""

from collections.abc import Mapping

from penstock.config.identity import CORDONED_LOG_DIRS, EVERY_LOG_DIR
from penstock.errors import InvalidRequest
from penstock.metadata.image import Broker, ClusterImage
from penstock.types import BrokerId


def placeable(image: ClusterImage) -> dict[BrokerId, Broker]:
    """The brokers that new replicas may be placed on."""
    return {id_: each for id_, each in image.brokers.items() if not _is_cordoned(each, image)}


def _is_cordoned(broker: Broker, image: ClusterImage) -> bool:
    text = image.broker_configs.get(broker.id, {}).get(CORDONED_LOG_DIRS)
    listed = broker.cordoned_log_dirs if text is None else _split(text)
    return EVERY_LOG_DIR in listed or (bool(broker.log_dirs) and {*broker.log_dirs} <= {*listed})


def check_cordoned(broker: Broker | None, settings: Mapping[str, str]) -> None:
    """Refuse a directory that the broker does not have: a misspelt one would get partitions."""
    listed = _split(settings.get(CORDONED_LOG_DIRS, ""))
    if broker is None or not broker.log_dirs:
        return  # it is down, or a Kafka broker: its directories are unknown
    for each in listed:
        if each not in {EVERY_LOG_DIR, *broker.log_dirs}:
            known = ", ".join(broker.log_dirs)
            raise InvalidRequest(
                f"{CORDONED_LOG_DIRS}: {each} is not among log.dirs, which are {known}"
            )


def _split(text: str) -> tuple[str, ...]:
    return tuple(each.strip() for each in text.split(",") if each.strip())
