"""The subject of a certificate in Java's RFC 2253 form: `CN=alice,OU=data,O=Example`.

Read from the certificate's own bytes: what OpenSSL's wrapper tells has lost the types of the
values, which decide how Java writes them.
"""

from collections.abc import Iterator
from typing import Final

from penstock.errors import ProtocolError

_KEYWORDS: Final = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.25": "DC",
    "0.9.2342.19200300.100.1.1": "UID",
}
"""The only names in RFC 2253; every other attribute is written by its number, in hex."""

_VERSION, _SEQUENCE, _OID = 0xA0, 0x30, 0x06
_STRINGS: Final = frozenset({0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1E})
"""UTF8String, PrintableString, T61String, IA5String, GeneralString, BMPString."""
_ESCAPED: Final = frozenset(',=+<>#;"\\')


def subject(certificate: bytes) -> str:
    """The subject of a certificate in DER."""
    try:
        return ",".join(_relative_names(certificate))
    except (IndexError, ValueError):
        raise ProtocolError("the client's certificate cannot be read") from None


def _relative_names(certificate: bytes) -> list[str]:
    _, outer, _ = _element(certificate, 0)
    _, signed, _ = _element(outer, 0)
    fields = [each for each in _elements(signed) if each[0] != _VERSION]
    # Serial number, signature, issuer, validity, subject.
    names = ["+".join(map(_attribute, _sets(one))) for _, one, _ in _elements(fields[4][1])]
    return names[::-1]


def _sets(relative_name: bytes) -> Iterator[bytes]:
    for _, attribute, _ in _elements(relative_name):
        yield attribute


def _attribute(content: bytes) -> str:
    tag, oid, end = _element(content, 0)
    if tag != _OID:
        raise ValueError("no attribute")
    number = _oid(oid)
    value_tag, value, _ = _element(content, end)
    keyword = _KEYWORDS.get(number)
    if keyword is None or value_tag not in _STRINGS:
        return f"{keyword or number}=#{content[end:].hex()}"
    return f"{keyword}={_escaped(value.decode('utf-8', 'replace'))}"


def _escaped(text: str) -> str:
    escaped = "".join(f"\\{each}" if each in _ESCAPED else each for each in text)
    escaped = escaped.replace("\0", "\\00")
    body = escaped.strip(" \r")
    lead = len(escaped) - len(escaped.lstrip(" \r"))
    start = "".join(f"\\{each}" for each in escaped[:lead])
    rest = "".join(f"\\{each}" for each in escaped[lead + len(body) :])
    return f"{start}{body}{rest}"


def _oid(content: bytes) -> str:
    first, numbers, value = content[0], [], 0
    for byte in content[1:]:
        value = value << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(value)
            value = 0
    head = min(first // 40, 2)
    return ".".join(map(str, (head, first - 40 * head, *numbers)))


def _elements(content: bytes) -> Iterator[tuple[int, bytes, int]]:
    at = 0
    while at < len(content):
        tag, value, at = _element(content, at)
        yield tag, value, at


def _element(data: bytes, at: int) -> tuple[int, bytes, int]:
    """Tag, content and end of the element that begins there."""
    tag, length = data[at], data[at + 1]
    start = at + 2
    if length & 0x80:
        count = length & 0x7F
        length = int.from_bytes(data[start : start + count], "big")
        start += count
    end = start + length
    if end > len(data):
        raise ValueError("an element is longer than what it is in")
    return tag, data[start:end], end
