"""Reads keys and certificates from files or settings as PEM text, and loads them into OpenSSL.

Blocks: it reads files, and runs `openssl` for PKCS12.
"""

import os
import re
import shutil
import ssl
import stat
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from penstock.config.value import Password
from penstock.errors import ConfigError

_JKS: Final = b"\xfe\xed\xfe\xed"
_DER_SEQUENCE: Final = b"\x30"
_OPENSSL_TIMEOUT_S: Final = 30
MAX_BYTES: Final = 1 << 24
_BLOCK: Final = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", re.DOTALL)


def read_store(name: str, path: str, password_name: str, password: Password | None) -> str:
    """The PEM text in a file. `name` and `password_name` are the settings, for messages."""
    data = _content(name, path)
    if data.startswith(_JKS):
        raise ConfigError(
            f"{name}: {path} is a JKS file, which only Java reads; convert it: keytool "
            f"-importkeystore -srckeystore {path} -destkeystore {path}.p12 -deststoretype PKCS12"
        )
    if b"-----BEGIN " in data:
        return pem(name, data.decode("utf-8", "replace"))
    if data.startswith(_DER_SEQUENCE):
        return _from_pkcs12(name, path, password_name, password)
    raise ConfigError(f"{name}: {path} is neither PEM nor PKCS12")


def _content(name: str, path: str) -> bytes:
    """The content of a regular file of limited size. An admin may name any path of a running
    broker, so pipes and endless files are refused.
    """
    try:
        with open(path, "rb", opener=_without_waiting) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ConfigError(f"{name}: {path} is not a regular file")
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{name}: cannot read {path}: {error.strerror}") from None
    except ValueError:
        raise ConfigError(f"{name}: {path!r} is not the name of a file") from None
    if len(data) > MAX_BYTES:
        raise ConfigError(f"{name}: {path} has more than {MAX_BYTES} bytes, too many for a store")
    return data


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def _from_pkcs12(name: str, path: str, password_name: str, password: Password | None) -> str:
    openssl = shutil.which("openssl")
    if openssl is None:
        raise ConfigError(f"{name}: {path} is PKCS12, which needs the openssl command; use PEM")
    # By standard input: other users can see arguments and environment variables.
    secret = "" if password is None else password.value
    try:
        done = subprocess.run(
            [openssl, "pkcs12", "-in", path, "-nodes", "-passin", "stdin"],
            input=f"{secret}\n".encode(),
            capture_output=True,
            timeout=_OPENSSL_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ConfigError(
            f"{name}: openssl did not read {path} in {_OPENSSL_TIMEOUT_S} s"
        ) from None
    if done.returncode:
        if b"mac verify" in done.stderr.lower() or b"invalid password" in done.stderr.lower():
            raise ConfigError(f"{password_name} is not the password of {path}")
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["it failed"]
        raise ConfigError(f"{name}: openssl cannot read {path}: {lines[0]}")
    return pem(name, done.stdout.decode("utf-8", "replace"))


def pem(name: str, text: str) -> str:
    """The blocks of a PEM text, with line breaks even if they were on one line."""
    blocks = []
    for label, body in _BLOCK.findall(text):
        if ":" not in body:  # unless it has headers, whose line breaks count
            packed = "".join(body.split())
            body = "\n".join(["", *re.findall(".{1,64}", packed), ""])
        blocks.append(f"-----BEGIN {label}-----{body}-----END {label}-----\n")
    if not blocks:
        raise ConfigError(f"{name} holds nothing in PEM (-----BEGIN …)")
    return "".join(blocks)


def certificates(text: str) -> list[bytes]:
    """The certificates of a PEM text, in DER."""
    return [
        ssl.PEM_cert_to_DER_cert(match[0])
        for match in _BLOCK.finditer(text)
        if match[1] == "CERTIFICATE"
    ]


def load_own(
    context: ssl.SSLContext, name: str, text: str, password_name: str, password: Password | None
) -> None:
    """Load the key and certificates into the context."""
    if not any("PRIVATE KEY" in label for label, _ in _BLOCK.findall(text)):
        raise ConfigError(f"{name} holds no private key: put it there beside its certificate")
    if not certificates(text):
        raise ConfigError(f"{name} holds no certificate: put it there beside its private key")
    # Never None: OpenSSL would prompt on the terminal.
    secret = "" if password is None else password.value
    try:
        with _as_file(text) as path:
            context.load_cert_chain(path, password=secret)
    except (ssl.SSLError, ValueError) as error:
        reason = str(getattr(error, "reason", None) or error)
        if "ENCRYPTED" in text:
            raise ConfigError(f"{password_name} does not open the key of {name}") from None
        raise ConfigError(f"{name} holds no usable key and certificate: {_plain(reason)}") from None


def load_trusted(context: ssl.SSLContext, name: str, text: str) -> None:
    """Make the context verify peer certificates against these."""
    found = certificates(text)
    if not found:
        raise ConfigError(f"{name} holds no certificate")
    try:
        for each in found:
            context.load_verify_locations(cadata=each)
    except (ssl.SSLError, ValueError) as error:
        reason = str(getattr(error, "reason", None) or error)
        raise ConfigError(f"{name} holds no usable certificate: {_plain(reason)}") from None


def _plain(reason: str) -> str:
    return reason.lower().replace("_", " ")


@contextmanager
def _as_file(text: str) -> Iterator[str]:
    """A path to the text: OpenSSL's wrapper reads keys from files only. A file in memory keeps the
    key off the disk.

    Where there is none, as on macOS, a file that only this user may read exists for a moment.
    """
    make: Callable[[str], int] | None = getattr(os, "memfd_create", None)
    if make is not None:
        handle = make("penstock-key")
        with os.fdopen(handle, "wb") as file:
            file.write(text.encode())
            file.flush()
            yield f"/proc/self/fd/{handle}"
        return
    handle, name = tempfile.mkstemp(suffix=".pem")
    try:
        with os.fdopen(handle, "w") as file:
            file.write(text)
        yield name
    finally:
        Path(name).unlink()
