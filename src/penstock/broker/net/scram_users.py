"""The SCRAM credentials of users, from the cluster image."""

import logging
from collections.abc import Callable, Collection, Mapping
from itertools import islice
from typing import Final, TypeAlias

from penstock.broker.cluster import Cluster
from penstock.metadata.client_entity import ClientEntity
from penstock.security.scram import ScramCredential, ScramMechanism, parse_stored
from penstock.security.scram_parameters import DEFAULT_PARAMETERS, ScramParameters, parameters_of

logger = logging.getLogger(__name__)

UserConfigs: TypeAlias = Mapping[ClientEntity, Mapping[str, str]]
MOST_SAMPLED: Final = 1000
"""Users examined to learn which salt sizes and iteration counts are in use; a sample is enough."""


def scram_credential(
    cluster: Cluster, mechanism: ScramMechanism, user: str
) -> ScramCredential | None:
    """The user's credential for this mechanism; None if it is missing or damaged."""
    text = cluster.image.client_configs.get(ClientEntity(user), {}).get(mechanism.mechanism)
    if text is None:
        return None
    found = parse_stored(mechanism, text)
    if found is None:
        logger.warning("the %s credential of user %r is damaged", mechanism.mechanism, user)
    return found


class ScramParametersInUse:
    """The salt sizes and iteration counts in use, by mechanism; computed again when users have
    changed.
    """

    def __init__(self, configs: Callable[[], UserConfigs]) -> None:
        self._configs = configs
        self._seen: object = None
        self._parameters: dict[ScramMechanism, Collection[ScramParameters]] = {}

    def __call__(self, mechanism: ScramMechanism) -> Collection[ScramParameters]:
        configs = self._configs()
        if configs is not self._seen:
            self._seen = configs
            self._parameters = {each: _parameters(each, configs) for each in ScramMechanism}
        return self._parameters[mechanism]


def _parameters(mechanism: ScramMechanism, configs: UserConfigs) -> Collection[ScramParameters]:
    texts = (each[mechanism.mechanism] for each in configs.values() if mechanism.mechanism in each)
    known = (parse_stored(mechanism, text) for text in islice(texts, MOST_SAMPLED))
    return {parameters_of(each.salt, each.iterations) for each in known if each} or {
        DEFAULT_PARAMETERS
    }
