"""Who this broker is: its number and its cluster, as its log directories remember them."""

from pathlib import Path

from penstock.errors import ConfigError
from penstock.log.files import Files, replace
from penstock.log.meta_properties import (
    FILE_NAME,
    MetaProperties,
    decode_meta_properties,
    encode_meta_properties,
)
from penstock.types import BrokerId

FIRST_BROKER = BrokerId(1)


def remembered(files: Files, directories: list[Path]) -> dict[Path, MetaProperties]:
    """What each log directory that was used before says; refused if two disagree."""
    found = {}
    for directory in directories:
        path = directory / FILE_NAME
        if files.exists(path):
            found[directory] = decode_meta_properties(files.read(path), str(path))
    for name in ("broker_id", "cluster_id"):
        values = {getattr(each, name) for each in found.values()} - {None}
        if len(values) > 1:
            listed = ", ".join(sorted(map(str, values)))
            raise ConfigError(f"log.dirs: the directories disagree on their {name}: {listed}")
    return found


def broker_id(configured: BrokerId | None, found: dict[Path, MetaProperties]) -> BrokerId | None:
    """The number from the settings, else the one used before; None: it has none yet."""
    before = next((each.broker_id for each in found.values() if each.broker_id is not None), None)
    if configured is None:
        return None if before is None else BrokerId(before)
    if before not in {None, configured}:
        raise ConfigError(
            f"broker.id is {configured}, but the log directories belong to broker {before}: "
            "use that number, or other log.dirs"
        )
    return configured


def cluster_id(found: dict[Path, MetaProperties]) -> str | None:
    return next((each.cluster_id for each in found.values() if each.cluster_id), None)


def remember(files: Files, directories: list[Path], number: BrokerId, cluster: str) -> None:
    """Write what is new into every directory, and refuse those of another cluster."""
    for directory in directories:
        path = directory / FILE_NAME
        wanted = MetaProperties(number, cluster)
        if files.exists(path):
            known = decode_meta_properties(files.read(path), str(path))
            if known.cluster_id not in {None, cluster}:
                raise ConfigError(
                    f"{directory} belongs to cluster {known.cluster_id}, this is {cluster}: "
                    "use other log.dirs"
                )
            if (known.broker_id, known.cluster_id) == (number, cluster):
                continue
            wanted = MetaProperties(number, cluster, known.directory_id)
        replace(files, path, encode_meta_properties(wanted))
