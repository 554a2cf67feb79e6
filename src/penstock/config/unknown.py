"""What to say of a setting that nobody declares."""

from collections.abc import Iterable

_KAFKA_ONLY = {
    "controller.quorum.": "there is no KRaft",
    "metadata.log.": "there is no KRaft",
    "metadata.max.": "there is no KRaft",
    "broker.heartbeat.": "there is no KRaft",
    "broker.session.": "there is no KRaft",
    "remote.": "tiered storage is not offered",
    "rlmm.config.": "tiered storage is not offered",
    "rsm.config.": "tiered storage is not offered",
    "group.share.": "share groups are not offered",
    "share.coordinator.": "share groups are not offered",
    "group.streams.": "streams groups are not offered",
}
"""Kafka's settings for what Penstock does not have; a near name would only mislead."""


def unknown(name: str, known: Iterable[str]) -> str:
    """One line that helps: the likely meaning of a mistyped name, or why Kafka's has no effect."""
    for prefix, reason in _KAFKA_ONLY.items():
        if name.startswith(prefix):
            return f"{name} has no effect: {reason}"
    from difflib import get_close_matches  # late: only a mistake needs it

    nearest = get_close_matches(name, known, n=1, cutoff=0.75)
    return f"unknown setting {name}" + (f"; did you mean {nearest[0]}?" if nearest else "")
