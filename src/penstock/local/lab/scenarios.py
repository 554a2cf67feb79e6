"""All scenarios of `penstock lab`, by name."""

from collections.abc import Callable
from typing import Final

from penstock.local.lab.epoch import epoch
from penstock.local.lab.high_watermark import high_watermark
from penstock.local.lab.in_sync import in_sync
from penstock.local.lab.narration import Narrator
from penstock.local.lab.truncation import divergence, fetch, truncation
from penstock.local.lab.unclean import unclean

SCENARIOS: Final[dict[str, Callable[[Narrator], None]]] = {
    "hw": high_watermark,
    "isr": in_sync,
    "fetch": fetch,
    "truncation": truncation,
    "divergence": divergence,
    "epoch": epoch,
    "unclean": unclean,
}

BY_HAND: Final = frozenset({"fetch", "truncation", "divergence"})
"""Scenarios that move two replicas in one process; the others start a cluster."""
