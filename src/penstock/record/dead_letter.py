"""The headers of dead letters: why a record was given up, and where it came from.

Everything that writes dead letters uses these names, so that one tool can read and redrive them
all. Values are UTF-8 text.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

Header: TypeAlias = tuple[str, bytes | None]

ERROR: Final = "penstock-error"
ATTEMPT: Final = "penstock-attempt"
ORIGIN_TOPIC: Final = "penstock-origin-topic"
ORIGIN_PARTITION: Final = "penstock-origin-partition"
ORIGIN_OFFSET: Final = "penstock-origin-offset"
ORIGIN_GROUP: Final = "penstock-origin-group"
SOURCE: Final = "penstock-source"

SUFFIX: Final = ".dlq"
"""The suffix of Penstock's names for topics of dead letters."""
PREFIX: Final = "dlq."
"""The prefix of the names that Kafka's share groups ask for (KIP-1191)."""

NAMES: Final = frozenset(
    {ERROR, ATTEMPT, ORIGIN_TOPIC, ORIGIN_PARTITION, ORIGIN_OFFSET, ORIGIN_GROUP, SOURCE}
)

OURS: Final = {each: each for each in NAMES}

FORMER: Final = {
    "penstock.reason": ERROR,
    "penstock.pipeline": SOURCE,
    "penstock.topic": ORIGIN_TOPIC,
    "penstock.partition": ORIGIN_PARTITION,
    "penstock.offset": ORIGIN_OFFSET,
}
"""Names that Spark pipelines of version 0.1 wrote; their source was the pipeline's bare name."""

SHARE: Final = {
    "__dlq.errors.message": ERROR,
    "__dlq.errors.topic": ORIGIN_TOPIC,
    "__dlq.errors.partition": ORIGIN_PARTITION,
    "__dlq.errors.offset": ORIGIN_OFFSET,
    "__dlq.errors.group": ORIGIN_GROUP,
    "__dlq.errors.delivery.count": ATTEMPT,
}
"""Names that Kafka's share groups write (KIP-1191)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """Why a record is a dead letter, and its origin as far as it is known."""

    error: str
    source: str
    """`delay`, `retry`, `spark:<pipeline>`, `share` or `sdk`."""
    attempt: int | None = None
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    group: str | None = None


def dead_letter_headers(letter: DeadLetter, headers: Iterable[Header]) -> list[Header]:
    """The headers of a dead letter: the record's own, then ours, which replace older ones."""
    ours = _values(letter)
    return [
        *without(headers, NAMES),
        *((name, str(value).encode()) for name, value in ours.items() if value is not None),
    ]


def share_letter_headers(letter: DeadLetter, headers: Iterable[Header]) -> list[Header]:
    """The headers of a dead letter by our names, and by those of Kafka's share groups.

    The latter have no header for the source.
    """
    values = _values(letter)
    return [
        *dead_letter_headers(letter, without(headers, frozenset(SHARE))),
        *(
            (name, str(values[ours]).encode())
            for name, ours in SHARE.items()
            if values[ours] is not None
        ),
    ]


def _values(letter: DeadLetter) -> dict[str, str | int | None]:
    return {
        ERROR: letter.error,
        SOURCE: letter.source,
        ATTEMPT: letter.attempt,
        ORIGIN_TOPIC: letter.topic,
        ORIGIN_PARTITION: letter.partition,
        ORIGIN_OFFSET: letter.offset,
        ORIGIN_GROUP: letter.group,
    }


def read_dead_letter(headers: Sequence[Header]) -> DeadLetter | None:
    """The dead letter that the headers describe, by our names, KIP-1191's or our former ones; None
    if they have no error.

    Anyone can write headers: a malformed number counts as absent.
    """
    texts = _renamed(headers, OURS)
    if ERROR not in texts and (share := _renamed(headers, SHARE)):
        texts |= {ERROR: "", SOURCE: "share", **share}
    if ERROR not in texts and ERROR in (former := _renamed(headers, FORMER)):
        texts |= former
        if SOURCE in former:
            texts[SOURCE] = f"spark:{former[SOURCE]}"
    if ERROR not in texts:
        return None
    return DeadLetter(
        error=texts[ERROR],
        source=texts.get(SOURCE, ""),
        attempt=_number(texts.get(ATTEMPT)),
        topic=texts.get(ORIGIN_TOPIC),
        partition=_number(texts.get(ORIGIN_PARTITION)),
        offset=_number(texts.get(ORIGIN_OFFSET)),
        group=texts.get(ORIGIN_GROUP),
    )


def own_headers(headers: Iterable[Header]) -> list[Header]:
    """The headers that the record had before it became a dead letter."""
    return without(headers, NAMES | FORMER.keys() | SHARE.keys())


def without(headers: Iterable[Header], names: frozenset[str]) -> list[Header]:
    return [each for each in headers if each[0] not in names]


def _renamed(headers: Iterable[Header], names: Mapping[str, str]) -> dict[str, str]:
    return {
        names[name]: value.decode(errors="replace")
        for name, value in headers
        if name in names and value is not None
    }


def _number(text: str | None) -> int | None:
    plain = text is not None and text.isascii() and text.isdecimal() and len(text) <= 19
    return int(text) if plain and text is not None else None


def is_named_for_letters(topic: str) -> bool:
    """Whether a topic has dead letters by its name; a route may give it any other name."""
    return topic.endswith(SUFFIX) or topic.startswith(PREFIX)
