"""The TLS key and certificate options of services beside the broker."""

from pathlib import Path

import click

KEYSTORE = click.option(
    "--keystore",
    metavar="FILE",
    help="Serve TLS with this key and certificate, in PEM or PKCS12.",
)
KEYSTORE_PASSWORD = click.option(
    "--keystore-password",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A file with the password of --keystore.",
)
