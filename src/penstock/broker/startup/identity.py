"""The broker's identity in its log directories: `meta.properties`."""

from collections.abc import Callable, Iterable
from pathlib import Path

from penstock.log.files import Files, replace
from penstock.log.meta_properties import (
    FILE_NAME,
    MetaProperties,
    decode_meta_properties,
    encode_meta_properties,
)
from penstock.types import BrokerId

FIRST_BROKER = BrokerId(1)


def write(
    files: Files,
    directories: Iterable[Path],
    broker_id: BrokerId,
    cluster: str,
    fresh_id: Callable[[], str] | None = None,
) -> dict[str, str]:
    """Update the file in every directory; returns the paths by `directory.id`.

    `fresh_id` makes an id for a directory without one. Without it, such a directory gets none.
    """
    paths = {}
    for directory in directories:
        path = directory / FILE_NAME
        known = MetaProperties(None, None)
        if files.exists(path):
            known = decode_meta_properties(files.read(path), str(path))
        directory_id = known.directory_id
        if directory_id is None and fresh_id is not None:
            directory_id = fresh_id()
        wanted = MetaProperties(broker_id, cluster, directory_id)
        if wanted != known:
            replace(files, path, encode_meta_properties(wanted))
        if directory_id is not None:
            paths[directory_id] = str(directory)
    return paths
