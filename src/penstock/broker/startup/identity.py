"""Who this broker is, as its log directories remember it: `meta.properties` of each."""

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


def remember(
    files: Files,
    directories: Iterable[Path],
    number: BrokerId,
    cluster: str,
    fresh_id: Callable[[], str] | None = None,
) -> dict[str, str]:
    """Write what is new into every directory; their paths by `directory.id` come back.

    `fresh_id` makes an id for a directory that has none; without it such a one gets none.
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
        wanted = MetaProperties(number, cluster, directory_id)
        if wanted != known:
            replace(files, path, encode_meta_properties(wanted))
        if directory_id is not None:
            paths[directory_id] = str(directory)
    return paths
