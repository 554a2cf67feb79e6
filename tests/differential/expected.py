"""Where Penstock means to differ from Kafka, and why. What is listed here must really differ."""

from dataclasses import dataclass
from fnmatch import fnmatchcase

Difference = tuple[str, str | None, str | None]
"""A path, what Kafka has there, and what the other has."""


@dataclass(frozen=True)
class Expected:
    """Differences at these paths of these cases; both are shell patterns."""

    cases: str
    paths: str
    reason: str

    def covers(self, case: str, path: str) -> bool:
        return fnmatchcase(case, self.cases) and fnmatchcase(path, self.paths)


EXPECTED: list[Expected] = []


def unexpected(case: str, differences: list[Difference]) -> list[Difference]:
    return [
        (path, kafka, other)
        for path, kafka, other in differences
        if not any(known.covers(case, path) for known in EXPECTED)
        and not _is_refusal_instead_of_a_bug(path, kafka, other)
    ]


def _is_refusal_instead_of_a_bug(path: str, kafka: str | None, other: str | None) -> bool:
    """UNKNOWN_SERVER_ERROR is an exception that Kafka did not foresee: any refusal is as good."""
    return (
        path.endswith("error_code")
        and kafka is not None
        and kafka.startswith("-1 ")
        and other is not None
        and not other.startswith("0 ")
    )
