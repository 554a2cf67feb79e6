"""Names by regular expression, in RE2's syntax as Kafka's are.

RE2 takes time in proportion to its input, whatever a client sends; Python's own engine does not,
and stands still on some expressions. So without the package `google-re2` there are none.
"""

from collections.abc import Iterable

from penstock.coordinator.refusal import InvalidRegularExpression

try:
    import re2
except ImportError:
    re2 = None


def matching(expression: str, names: Iterable[str]) -> frozenset[str]:
    """Those whose whole name the expression matches."""
    if re2 is None:
        raise InvalidRegularExpression("this broker lacks the package google-re2")
    options = re2.Options()
    options.log_errors = False
    try:
        pattern = re2.compile(expression, options=options)
    except re2.error as error:
        raise InvalidRegularExpression(f"{expression!r}: {error}") from None
    return frozenset(each for each in names if pattern.fullmatch(each))
