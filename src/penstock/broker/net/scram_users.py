"""The SCRAM credentials of users, as the cluster's image has them."""

import logging

from penstock.broker.cluster import Cluster
from penstock.metadata.client_entity import ClientEntity
from penstock.security.scram import ScramCredential, ScramMechanism, parse_stored

logger = logging.getLogger(__name__)


def scram_credential(
    cluster: Cluster, mechanism: ScramMechanism, user: str
) -> ScramCredential | None:
    """The user's credential for this mechanism; None if there is none that can be used."""
    text = cluster.image.client_configs.get(ClientEntity(user), {}).get(mechanism.mechanism)
    if text is None:
        return None
    found = parse_stored(mechanism, text)
    if found is None:
        logger.warning("the %s credential of user %r is damaged", mechanism.mechanism, user)
    return found
