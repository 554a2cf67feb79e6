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


class ScramLook(NamedTuple):
    """The parts of a credential that a client sees before it proves anything."""

    salt_bytes: int | None
    """None: a number in base 36, as Java writes it."""
    iterations: int


OUR_LOOK: Final = ScramLook(16, 8192)
"""The look of users that `penstock user create` makes."""


def look_of(salt: bytes, iterations: int) -> ScramLook:
    return ScramLook(None if _JAVA.fullmatch(salt) else len(salt), iterations)


def unknown_user(
    secret: bytes, mechanism: str, name: str, looks: Collection[ScramLook]
) -> tuple[bytes, int]:
    """The salt and iterations of a user who does not exist; always the same for a name.

    With several looks, the name decides which; another look changes the choice for few names.
    """
    seed = hmac.digest(secret, f"{mechanism}:{name}".encode(), "sha256")
    look = min(looks, key=lambda each: hmac.digest(seed, repr(each).encode(), "sha256"))
    data = hashlib.shake_256(seed)
    if look.salt_bytes is not None:
        return data.digest(look.salt_bytes), look.iterations
    number, digits = int.from_bytes(data.digest(JAVA_BITS // 8 + 1)) >> 8 - JAVA_BITS % 8, []
    while number:
        number, digit = divmod(number, len(DIGITS))
        digits.append(DIGITS[digit])
    return bytes(reversed(digits)), look.iterations
