"""The SASL of one listener: its mechanisms and users."""

from collections.abc import Callable, Collection, Mapping
from functools import partial
from random import Random
from typing import Final

from penstock.broker.net.key_set import KeySet
from penstock.clock import Clock
from penstock.config.listener_security import ListenerSecurity
from penstock.errors import ConfigError
from penstock.security.delegation_token import DelegationToken
from penstock.security.jaas import parse_jaas
from penstock.security.oauthbearer import MECHANISM as OAUTHBEARER
from penstock.security.oauthbearer import OAuthBearerExchange
from penstock.security.plain import PlainExchange
from penstock.security.sasl import MECHANISMS, SaslExchange
from penstock.security.scram import (
    SCRAM_MECHANISMS,
    ScramCredential,
    ScramExchange,
    ScramMechanism,
)
from penstock.security.scram_parameters import DEFAULT_PARAMETERS, ScramParameters

FindScramUser = Callable[[ScramMechanism, str], ScramCredential | None]
FindToken = Callable[[ScramMechanism, str], tuple[ScramCredential, DelegationToken] | None]
FindScramParameters = Callable[[ScramMechanism], Collection[ScramParameters]]
NONCE_BITS: Final = 160

_NOT_OFFERED: Final = {
    "GSSAPI": "Kerberos is not supported",
}


def no_user(_mechanism: ScramMechanism, _name: str) -> ScramCredential | None:
    """The lookup of SCRAM users until the store has been read: there are none."""
    return None


def default_parameters(_mechanism: ScramMechanism) -> Collection[ScramParameters]:
    return (DEFAULT_PARAMETERS,)


def no_token(
    _mechanism: ScramMechanism, _token_id: str
) -> tuple[ScramCredential, DelegationToken] | None:
    """The lookup of delegation tokens until they have been read: there are none."""
    return None


class SaslListener:
    """Begins logins. PLAIN users are fixed at start-up, SCRAM users are in the metadata store, and
    OAUTHBEARER users are known to the issuer that signs their tokens.

    `chance` must be good enough for secrets.
    """

    def __init__(self, security: ListenerSecurity, clock: Clock, chance: Random) -> None:
        self._chance = chance
        self.salt_secret = chance.randbytes(32)
        """Derives the salts of unknown SCRAM users; replaced by the cluster's secret once that is
        read.
        """
        self.find_scram_user: FindScramUser = no_user
        self.scram_parameters: FindScramParameters = default_parameters
        self.find_token: FindToken = no_token
        config = security.config()
        self.listener = security.listener
        self.mechanisms: Final = config.sasl_enabled_mechanisms
        self.max_receive_bytes: Final = config.sasl_server_max_receive_size
        self.successes = self.failures = self.reauthentications = 0
        self.without_reauthentication = 0
        """Logins of clients that cannot re-authenticate, since they do not use SaslAuthenticate v1
        (KIP-368).
        """
        self.expired = 0
        """Connections that were closed because their login had expired."""
        _check_mechanisms(security, self.mechanisms)
        self._plain_users: Mapping[str, str] = {}
        self._lifetimes_ms: dict[str, int] = {}
        for mechanism in self.mechanisms:
            own = security.config(mechanism)
            self._lifetimes_ms[mechanism] = own.connections_max_reauth_ms
            name = security.name("sasl.jaas.config", mechanism)
            if own.sasl_jaas_config is not None:
                module = parse_jaas(name, own.sasl_jaas_config.value, mechanism)
                if mechanism == "PLAIN":
                    self._plain_users = module.users()
        if "PLAIN" in self.mechanisms and not self._plain_users:
            raise ConfigError(
                f"listener.name.{self.listener.lower()}.plain.sasl.jaas.config names no users "
                '(user_alice="…"), but sasl.enabled.mechanisms has PLAIN'
            )

        self.key_set = KeySet(security, clock) if OAUTHBEARER in self.mechanisms else None

    @property
    def offers_scram(self) -> bool:
        return any(each in SCRAM_MECHANISMS for each in self.mechanisms)

    def lifetime_ms(self, mechanism: str) -> int:
        """How long a login lasts; 0: as long as the connection."""
        return self._lifetimes_ms[mechanism]

    def token_holds(self, mechanism: str, token_id: str) -> bool:
        """Whether one could log in by this delegation token now."""
        return self.find_token(SCRAM_MECHANISMS[mechanism], token_id) is not None

    def exchange(self, mechanism: str) -> SaslExchange:
        """Begin a login with the given mechanism."""
        if mechanism == "PLAIN":
            return PlainExchange(self._plain_users)
        if mechanism == OAUTHBEARER and self.key_set is not None:
            return OAuthBearerExchange(self.key_set.check)
        scram = SCRAM_MECHANISMS[mechanism]
        find = partial(self.find_scram_user, scram)
        nonce = f"{self._chance.getrandbits(NONCE_BITS):x}"
        find_token = partial(self.find_token, scram)
        parameters = partial(self.scram_parameters, scram)
        return ScramExchange(scram, find, nonce, self.salt_secret, find_token, parameters)


def _check_mechanisms(security: ListenerSecurity, mechanisms: tuple[str, ...]) -> None:
    name = security.name("sasl.enabled.mechanisms")
    offered = ", ".join(MECHANISMS)
    if not mechanisms:
        raise ConfigError(f"{name} is empty, must be a list of {offered}")
    for each in mechanisms:
        if each not in MECHANISMS:
            why = _NOT_OFFERED.get(each, "there is no such mechanism")
            raise ConfigError(f"{name} has {each}, but {why}; choose from {offered}")
