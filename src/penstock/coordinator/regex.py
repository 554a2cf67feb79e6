"""Matches names against regular expressions in RE2 syntax, as Kafka does.

RE2 needs time proportional to its input, whatever a client sends. Python's own engine does not:
some expressions would block the broker. So without the package `google-re2` every expression is
refused.
"""

from collections.abc import Iterable

from penstock.coordinator.errors import InvalidRegularExpression

try:
    import re2
except ImportError:
    re2 = None


def matching(expression: str, names: Iterable[str]) -> frozenset[str]:
    """The names that the expression matches in full."""
    if re2 is None:
        raise InvalidRegularExpression("this broker lacks the package google-re2")
    options = re2.Options()
    options.log_errors = False
    try:
        pattern = re2.compile(expression, options=options)
    except re2.error as error:
        raise InvalidRegularExpression(f"{expression!r}: {error}") from None
    return frozenset(each for each in names if pattern.fullmatch(each))
