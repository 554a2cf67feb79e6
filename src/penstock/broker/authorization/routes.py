"""Who may say where the delay service moves records to.

It writes with rights of its own: whoever names a target of it must be allowed to write there, or
could write through it into every topic.
"""

from collections.abc import Iterable
from typing import Any, Final

from penstock.broker.acls.access import Access
from penstock.config.delay_route import DELAY_TO, DLQ_TOPIC, RETRY_TO
from penstock.security.acl import AclOperation

TARGETS: Final = frozenset({DELAY_TO, RETRY_TO, DLQ_TOPIC})


def may_route(access: Access, configs: Iterable[Any]) -> bool:
    """Whether all topics may be written that these settings of a topic name as targets."""
    targets = [each.value for each in configs if each.name in TARGETS and each.value]
    return all(access.topic(AclOperation.WRITE, each) for each in targets)


def may_reroute(access: Access, topic: str, configs: Iterable[Any]) -> bool:
    """As `may_route`, of a topic that has records: they must be allowed to be read, too."""
    routed = [each for each in configs if each.name in TARGETS and each.value]
    return not routed or (access.topic(AclOperation.READ, topic) and may_route(access, routed))
