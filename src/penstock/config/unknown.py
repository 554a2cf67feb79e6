"""Messages about undeclared settings."""

from collections.abc import Iterable
from typing import NamedTuple

from penstock.config.old_names import OLD_NAMES

_KAFKA_ONLY = {
    "controller.quorum.": "there is no KRaft",
    "metadata.log.": "there is no KRaft",
    "metadata.max.": "there is no KRaft",
    "broker.heartbeat.": "there is no KRaft",
    "broker.session.": "there is no KRaft",
    "remote.": "tiered storage is not offered",
    "rlmm.config.": "tiered storage is not offered",
    "rsm.config.": "tiered storage is not offered",
}
"""Kafka's settings for features that Penstock lacks; suggesting a similar name would mislead."""


class Unknown(NamedTuple):
    """An undeclared name, and the setting that was probably meant."""

    name: str
    nearest: str | None = None
    no_effect: str | None = None
    """Why this Kafka setting has no effect here."""

    def __str__(self) -> str:
        if self.no_effect:
            return f"{self.name} has no effect: {self.no_effect}"
        return f"unknown setting {self.name}" + (
            f"; did you mean {self.nearest}?" if self.nearest else ""
        )


def unknown(name: str, known: Iterable[str]) -> Unknown:
    for prefix, reason in _KAFKA_ONLY.items():
        if name.startswith(prefix):
            return Unknown(name, no_effect=reason)
    if name in OLD_NAMES:
        return Unknown(name, OLD_NAMES[name])
    from difflib import get_close_matches  # late: only needed for a mistake

    nearest = get_close_matches(name, known, n=1, cutoff=0.75)
    return Unknown(name, nearest[0] if nearest else None)
