"""`ssl.principal.mapping.rules`: maps a certificate's subject to a user.

    RULE:^CN=(.*?),OU=data.*$/$1/L, DEFAULT

The first rule whose pattern matches the whole subject decides. `$1` is the match of the first
group; L and U make the result lower or upper case. DEFAULT takes the subject unchanged.
"""

import re
from collections.abc import Sequence
from typing import Final

import msgspec

from penstock.errors import ConfigError

NAME: Final = "ssl.principal.mapping.rules"
_RULE: Final = re.compile(
    r"\s*(?:(?P<default>DEFAULT)"
    r"|RULE:(?P<pattern>(?:\\.|[^\\/])*)/(?P<replacement>(?:\\.|[^\\/])*)/(?P<case>[LU]?))"
    r"\s*(?:,|$)",
    re.DOTALL,
)
_JAVA_GROUP: Final = re.compile(r"\(\?<(?=[A-Za-z])")


class MappingRule(msgspec.Struct, frozen=True):
    """One rule; without a pattern the subject is taken unchanged."""

    pattern: re.Pattern[str] | None = None
    replacement: str = ""
    case: str = ""

    def apply(self, subject: str) -> str | None:
        """The user's name; None if the rule does not match."""
        if self.pattern is None:
            return subject
        if self.pattern.fullmatch(subject) is None:
            return None
        # Like Java's replaceAll, which also replaces an empty match at the end: use ^ and $.
        name = self.pattern.sub(self._expanded, subject)
        return name.lower() if self.case == "L" else name.upper() if self.case == "U" else name

    def _expanded(self, match: re.Match[str]) -> str:
        def piece(found: re.Match[str]) -> str:
            if found[1] is None:
                return found[0][1:]  # an escaped character
            number = int(found[1])
            # Kafka takes a reference to a missing group as text.
            return match[number] or "" if number <= match.re.groups else found[0]

        return re.sub(r"\$([0-9]+)|\\.", piece, self.replacement, flags=re.DOTALL)


def parse_rules(text: str) -> tuple[MappingRule, ...]:
    if not text.strip():
        return (MappingRule(),)
    rules, at = [], 0
    while at < len(text):
        match = _RULE.match(text, at)
        if match is None:
            raise ConfigError(
                f"{NAME}: {text[at:].strip()!r} must be DEFAULT or RULE:pattern/replacement/, "
                "with L or U behind the last slash for lower or upper case"
            )
        rules.append(_rule(match))
        at = match.end()
    return tuple(rules)


def _rule(match: re.Match[str]) -> MappingRule:
    if match["default"]:
        return MappingRule()
    try:
        pattern = re.compile(_JAVA_GROUP.sub("(?P<", match["pattern"]))
    except re.error as error:
        raise ConfigError(f"{NAME}: {match['pattern']!r} is not a pattern: {error}") from None
    return MappingRule(pattern, match["replacement"], match["case"])


def mapped(rules: Sequence[MappingRule], subject: str) -> str | None:
    """The user's name by the first rule that matches; None if none does."""
    for rule in rules:
        name = rule.apply(subject)
        if name is not None:
            return name
    return None
