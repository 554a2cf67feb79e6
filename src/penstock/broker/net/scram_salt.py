"""The secret from which unknown SCRAM users get their salts.

All brokers share it, and it never changes: a salt that differed between brokers, or after a
restart, would reveal that the user does not exist.
"""

import logging
from random import Random
from typing import Final

from penstock.metadata import paths
from penstock.metadata.errors import NodeExists, StoreError
from penstock.metadata.store import MetadataStore

logger = logging.getLogger(__name__)

SECRET_BYTES: Final = 32


async def salt_secret(store: MetadataStore, chance: Random) -> bytes:
    """The cluster's secret; the first broker creates it."""
    fresh = chance.randbytes(SECRET_BYTES)
    *parents, path = paths.with_parents(paths.SCRAM_SALT_SECRET)
    try:
        for parent in parents:
            await _created(store, parent, None)
        await _created(store, path, fresh.hex().encode())
        return bytes.fromhex(((await store.get(path)).data or b"").decode("ascii"))
    except (StoreError, ValueError) as error:
        logger.warning("salts of unknown users are of this broker alone: %s: %s", path, error)
        return fresh


async def _created(store: MetadataStore, path: str, data: bytes | None) -> None:
    try:
        await store.create(path, data)
    except NodeExists:
        return
