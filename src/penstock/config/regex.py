"""Matches names against regular expressions in RE2 syntax, as Kafka does.

RE2 takes time linear in its input, whatever a client sends. Python's own engine does not: some
expressions would block the broker. So without the package `google-re2` every expression is refused.
"""

from collections.abc import Iterable

from penstock.errors import ErrorCode, KafkaError


class InvalidRegularExpression(KafkaError):
    """RE2 rejects the expression, or this broker lacks RE2."""

    code = ErrorCode.INVALID_REGULAR_EXPRESSION


def reason(error: Exception) -> str:
    """RE2's error message, which may be bytes."""
    message = error.args[0] if error.args else ""
    return message.decode() if isinstance(message, bytes) else str(message)


def matching(expression: str, names: Iterable[str]) -> frozenset[str]:
    """The names that the expression matches in full."""
    try:
        import re2  # late: it takes 3 MB, and most brokers never get an expression
    except ImportError:
        raise InvalidRegularExpression("this broker lacks the package google-re2") from None
    options = re2.Options()
    options.log_errors = False
    try:
        pattern = re2.compile(expression, options=options)
    except re2.error as error:
        raise InvalidRegularExpression(f"{expression!r}: {reason(error)}") from None
    return frozenset(each for each in names if pattern.fullmatch(each))
