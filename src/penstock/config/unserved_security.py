"""Kafka's security settings that are not supported yet, and that therefore stop the start.

A broker that ignored one of them would be open to everyone while its operator believes it
protected.
"""

import re

_PREFIXES = (
    "authorizer.",
    "delegation.token.",
    "principal.builder.",
    "sasl.",
    "security.providers",
    "ssl.",
    "zookeeper.ssl.",
)
_OF_ONE_LISTENER = re.compile(r"listener\.name\.[^.]+\.([^.]+\.(?=sasl\.))?")

_IN_ENVIRONMENT = re.compile(
    r"(sasl\.(enabled|jaas|kerberos|login|mechanism|oauthbearer|server|client)\..*)"
    r"|(ssl\.(allow|cipher|client|enabled|endpoint|engine|key|keymanager|keystore|principal|secure"
    r"|trustmanager|truststore)\..*)|ssl\.protocol|ssl\.provider"
    r"|(?!sasl\.|ssl\.).*"
)
"""Kafka's own names. Others, such as KAFKA_SASL_PASSWORD, belong to clients."""

_ASKS_FOR_NOTHING = {
    "zookeeper.ssl.crl.enable": "false",
    "zookeeper.ssl.ocsp.enable": "false",
}


_VALIDATOR = re.compile(
    r"listener\.name\.[^.]+\.oauthbearer\.sasl\.server\.callback\.handler\.class="
    r"org\.apache\.kafka\.common\.security\.oauthbearer\.(secured\.)?"
    r"OAuthBearerValidatorCallbackHandler"
)


def is_done_anyway(name: str, text: str) -> bool:
    """Whether the setting names Kafka's class for validating access tokens, which is built in."""
    return _VALIDATOR.fullmatch(f"{name.lower()}={text.strip()}") is not None


def is_of_clients(name: str) -> bool:
    """Whether a variable with this name belongs to a client on the same machine."""
    return name.startswith(("sasl.", "ssl.")) and not _IN_ENVIRONMENT.fullmatch(name)


def is_refused(name: str, text: str, *, from_environment: bool = False) -> bool:
    """Whether the setting asks for protection that this broker does not provide."""
    # A wrong prefix or wrong case does not change what was meant.
    whole = name.lower().removeprefix("penstock.")
    short = _OF_ONE_LISTENER.sub("", whole)
    if not short.startswith(_PREFIXES):
        return False
    if from_environment and short == whole and not _IN_ENVIRONMENT.fullmatch(short):
        return False  # a client's variable: clients have no listeners
    return text.strip().lower() not in {"", _ASKS_FOR_NOTHING.get(short)}
