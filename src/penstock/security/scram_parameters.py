"""Makes the salts of unknown SCRAM users look like those of known users. Pure.

Each tool makes salts in its own format, with its own number of iterations. A salt of another kind
would reveal that the user does not exist.
"""

import hashlib
import hmac
import re
from collections.abc import Collection
from typing import Final, NamedTuple

DIGITS: Final = b"0123456789abcdefghijklmnopqrstuvwxyz"
JAVA_BITS: Final = 130
"""Kafka's tools write a random number of this many bits in base 36."""
_JAVA: Final = re.compile(rb"[0-9a-z]{20,26}")


class ScramParameters(NamedTuple):
    """The parts of a credential that a client sees before it proves anything."""

    salt_bytes: int | None
    """None: a number in base 36, as Java writes it."""
    iterations: int


DEFAULT_PARAMETERS: Final = ScramParameters(16, 8192)
"""The parameters of users that `penstock user create` makes."""


def parameters_of(salt: bytes, iterations: int) -> ScramParameters:
    return ScramParameters(None if _JAVA.fullmatch(salt) else len(salt), iterations)


def unknown_user(
    secret: bytes, mechanism: str, name: str, parameters: Collection[ScramParameters]
) -> tuple[bytes, int]:
    """The salt and iterations of a user who does not exist; always the same for a name.

    With several parameters, the name decides which; more of them change the choice for few names.
    """
    seed = hmac.digest(secret, f"{mechanism}:{name}".encode(), "sha256")
    chosen = min(parameters, key=lambda each: hmac.digest(seed, _ranked_text(each), "sha256"))
    data = hashlib.shake_256(seed)
    if chosen.salt_bytes is not None:
        return data.digest(chosen.salt_bytes), chosen.iterations
    number, digits = int.from_bytes(data.digest(JAVA_BITS // 8 + 1)) >> 8 - JAVA_BITS % 8, []
    while number:
        number, digit = divmod(number, len(DIGITS))
        digits.append(DIGITS[digit])
    return bytes(reversed(digits)), chosen.iterations


def _ranked_text(each: ScramParameters) -> bytes:
    # Never change this text, old class name included: brokers of all versions must choose alike,
    # or a rolling upgrade would show which users do not exist.
    return f"ScramLook(salt_bytes={each.salt_bytes}, iterations={each.iterations})".encode()
