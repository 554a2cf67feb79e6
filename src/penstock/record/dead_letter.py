"""Dead letters: which headers say why a record was given up, and where it came from.

Everything that writes dead letters uses these names, so that one tool can read and redrive them
all. Values are UTF-8 text.
"""

from collections.abc import Iterable, Sequence
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

NAMES: Final = frozenset(
    {ERROR, ATTEMPT, ORIGIN_TOPIC, ORIGIN_PARTITION, ORIGIN_OFFSET, ORIGIN_GROUP, SOURCE}
)

FORMER: Final = {
    "penstock.reason": ERROR,
    "penstock.pipeline": SOURCE,
    "penstock.topic": ORIGIN_TOPIC,
    "penstock.partition": ORIGIN_PARTITION,
    "penstock.offset": ORIGIN_OFFSET,
}
"""Names that Spark pipelines of version 0.1 wrote; their source was the pipeline's bare name."""


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
    ours = {
        ERROR: letter.error,
        SOURCE: letter.source,
        ATTEMPT: letter.attempt,
        ORIGIN_TOPIC: letter.topic,
        ORIGIN_PARTITION: letter.partition,
        ORIGIN_OFFSET: letter.offset,
        ORIGIN_GROUP: letter.group,
    }
    return [
        *without(headers, NAMES),
        *((name, str(value).encode()) for name, value in ours.items() if value is not None),
    ]


def read_dead_letter(headers: Sequence[Header]) -> DeadLetter | None:
    """What the headers say, by today's names or the former ones; None if they say no error.

    Anybody can write headers: a number that is none counts as absent.
    """
    texts: dict[str, str] = {}
    for name, value in headers:
        if name in NAMES and value is not None:
            texts[name] = _text(value)
    if ERROR not in texts:
        for name, value in headers:
            if name in FORMER and value is not None:
                texts[FORMER[name]] = _text(value)
        if SOURCE in texts and ERROR in texts:
            texts[SOURCE] = f"spark:{texts[SOURCE]}"
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


def without(headers: Iterable[Header], names: frozenset[str]) -> list[Header]:
    return [each for each in headers if each[0] not in names]


def _text(value: bytes) -> str:
    return value.decode(errors="replace")


def _number(text: str | None) -> int | None:
    plain = text is not None and text.isascii() and text.isdecimal() and len(text) <= 19
    return int(text) if plain and text is not None else None
