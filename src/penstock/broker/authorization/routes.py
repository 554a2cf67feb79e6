"""Checks who may configure targets of the delay service.

The service writes with its own permissions: a client that names a target must be allowed to write
there, or it could write into every topic through the service.
"""

from collections.abc import Iterable
from typing import Any, Final

from penstock.broker.acls.access import Access
from penstock.config.delay_route import DELAY_TO, DLQ_TOPIC, RETRY_TO
from penstock.security.acl import AclOperation

TARGETS: Final = frozenset({DELAY_TO, RETRY_TO, DLQ_TOPIC})


def may_route(access: Access, configs: Iterable[Any]) -> bool:
    """Whether the client may write to all topics that these topic settings name as targets."""
    targets = [each.value for each in configs if each.name in TARGETS and each.value]
    return all(access.topic(AclOperation.WRITE, each) for each in targets)


def may_reroute(access: Access, topic: str, configs: Iterable[Any]) -> bool:
    """Like `may_route`, for an existing topic: the client must also be allowed to read it."""
    routed = [each for each in configs if each.name in TARGETS and each.value]
    return not routed or (access.topic(AclOperation.READ, topic) and may_route(access, routed))
