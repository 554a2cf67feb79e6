"""Checks who may configure targets of the delay service.

The service writes with its own permissions: a client that names a target must be allowed to write
there, or it could write into every topic through the service.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from penstock.broker.acls.access import Access
from penstock.config.delay_route import DELAY_TO, DLQ_TOPIC, RETRY_TO, default_dead_letters
from penstock.security.acl import AclOperation

TARGETS: Final = frozenset({DELAY_TO, RETRY_TO, DLQ_TOPIC})
DELETE: Final = 1
"""The operation of IncrementalAlterConfigs that removes a setting."""


def may_route(access: Access, topic: str, configs: Iterable[Any]) -> bool:
    """Whether the client may write to all topics that the settings of a new topic route to."""
    given = _given(configs)
    return _may_write(access, _new_targets(topic, given, {}, dict(given)))


def may_reroute(
    access: Access,
    topic: str,
    configs: Iterable[Any],
    before: Mapping[str, str],
    *,
    replaces: bool,
) -> bool:
    """Like `may_route`, for an existing topic: the client must also be allowed to read it.

    `before` has the topic's settings; `replaces`: they end with the request, unless it has them.
    """
    given = _given(configs)
    after = dict(given) if replaces else {**before, **dict(given)}
    targets = _new_targets(topic, given, before, after)
    return not targets or (access.topic(AclOperation.READ, topic) and _may_write(access, targets))


def _given(configs: Iterable[Any]) -> list[tuple[str, str]]:
    """The targets in a request; empty if it removes them. It may name a setting twice."""
    return [
        (each.name, "" if getattr(each, "config_operation", None) == DELETE else each.value or "")
        for each in configs
        if each.name in TARGETS
    ]


def _new_targets(
    topic: str,
    given: Iterable[tuple[str, str]],
    before: Mapping[str, str],
    after: Mapping[str, str],
) -> set[str]:
    """The targets that the request names, and the topic of dead letters if that becomes another:
    without a setting it has a default.
    """
    targets = {each for _, each in given if each}
    letters = _dead_letters(topic, after)
    if letters and letters != _dead_letters(topic, before):
        targets.add(letters)
    return targets


def _dead_letters(topic: str, settings: Mapping[str, str]) -> str:
    """The topic of dead letters; empty without a route."""
    if not settings.get(DELAY_TO) and not settings.get(RETRY_TO):
        return ""
    return settings.get(DLQ_TOPIC) or default_dead_letters(topic)


def _may_write(access: Access, targets: Iterable[str]) -> bool:
    return all(access.topic(AclOperation.WRITE, each) for each in sorted(targets))
