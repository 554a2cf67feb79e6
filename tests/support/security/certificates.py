"""Keys and certificates for tests, made by OpenSSL."""

import socket
import ssl
import subprocess
from pathlib import Path
from typing import NamedTuple


class KeyFiles(NamedTuple):
    """A key, its certificate, and both in one file."""

    key: Path
    certificate: Path
    store: Path

    @property
    def pem(self) -> str:
        return self.store.read_text()


def certified(
    folder: Path, name: str, subject: str = "/CN=127.0.0.1/O=Example", *, days: int = 2
) -> KeyFiles:
    """A self-signed certificate, which is its own authority."""
    files = KeyFiles(*(folder / f"{name}.{kind}.pem" for kind in ("key", "cert", "store")))
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    command += ["-nodes", "-days", str(days), "-subj", subject]
    command += ["-addext", "subjectAltName=IP:127.0.0.1", "-addext", "keyUsage=digitalSignature"]
    _run(*command, "-keyout", str(files.key), "-out", str(files.certificate))
    files.store.write_text(files.key.read_text() + files.certificate.read_text())
    return files


def pkcs12(files: KeyFiles, password: str, *, with_key: bool = True) -> Path:
    """Key and certificate as Java's keytool and OpenSSL write them by default."""
    path = files.store.with_suffix(".p12")
    key = ["-inkey", str(files.key)] if with_key else ["-nokeys"]
    inputs = [*key, "-in", str(files.certificate)]
    _run("openssl", "pkcs12", "-export", *inputs, "-out", str(path), "-passout", f"pass:{password}")
    return path


def encrypted(files: KeyFiles, password: str) -> Path:
    """The key encrypted, with the certificate, in one file."""
    path = files.store.with_suffix(".encrypted.pem")
    command = ["openssl", "pkcs8", "-topk8", "-in", str(files.key), "-passout", f"pass:{password}"]
    path.write_text(_run(*command) + files.certificate.read_text())
    return path


def served_certificate(address: str, trusted: KeyFiles) -> str:
    """The fingerprint of the certificate that the broker presents to a new connection."""
    host, _, port = address.rpartition(":")
    context = ssl.create_default_context(cafile=str(trusted.certificate))
    with (
        socket.create_connection((host, int(port)), timeout=10) as plain,
        context.wrap_socket(plain, server_hostname=host) as sock,
    ):
        return (sock.getpeercert(binary_form=True) or b"").hex()


def _run(*command: str) -> str:
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stdout
