"""`python -m penstock` is `penstock`."""

from penstock.cli.entry import run

run()
