"""Fuzz target: no bytes log anybody in, or raise anything but a refusal.

PYTHONPATH=src:tests python -m fuzz login -max_total_time=60
"""

from contextlib import suppress

from penstock.errors import ConfigError, ProtocolError
from penstock.metadata.zookeeper.digest_md5 import DigestLogin, LoginRefused
from penstock.security.access_token import Expectations, checked, parse_keys
from penstock.security.certificate import parse_certificate
from penstock.security.errors import AuthenticationFailed
from penstock.security.oauthbearer import InvalidToken, OAuthBearerExchange
from penstock.security.plain import PlainExchange
from penstock.security.sasl import SaslExchange
from penstock.security.scram import ScramExchange, ScramMechanism, credential, parse_stored

MECHANISM = ScramMechanism.SCRAM_SHA_256
KNOWN = credential(MECHANISM, b"nobody knows this", b"salt", 4096)
KEYS = parse_keys(
    "keys",
    b'{"keys":[{"kty":"EC","crv":"P-256","kid":"k",'
    b'"x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",'
    b'"y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}]}',
)


def fuzz_login(data: bytes) -> None:
    """Read `data` as each message of a login, and as each untrusted text."""
    scram = ScramExchange(MECHANISM, lambda _: KNOWN, "nonce", b"secret")
    begun = ScramExchange(MECHANISM, lambda _: KNOWN, "nonce", b"secret")
    begun.step(b"n,,n=a,r=b")
    bearer = OAuthBearerExchange(
        lambda token: checked(token, KEYS, Expectations(), now_s=1_000_000.0)
    )
    exchanges: list[SaslExchange] = [scram, begun, bearer, PlainExchange({"a": "unguessable"})]
    for each in exchanges:
        with suppress(AuthenticationFailed):
            assert each.step(data).user is None
    text = data.decode("latin-1")
    with suppress(InvalidToken):
        checked(text, KEYS, Expectations(), now_s=1_000_000.0)
    with suppress(ConfigError):
        parse_keys("keys", data)
    with suppress(ProtocolError):
        parse_certificate(data)
    with suppress(LoginRefused):
        DigestLogin("a", "b", "c").answer(data)
    parse_stored(MECHANISM, text)
