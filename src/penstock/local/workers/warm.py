"""Imports and compiles what each worker needs at its start, once before the fork."""

from contextlib import suppress
from importlib import import_module

from penstock.wire.apis import APIS
from penstock.wire.codec import decoder, encoder
from penstock.wire.frame import API_VERSIONS

LATE_MODULES = ("uvloop", "encodings.idna")
"""Modules imported late: by a new loop, and by the first name resolution."""
LEADER_AND_ISR, UPDATE_METADATA = 4, 6
STARTING = (API_VERSIONS, LEADER_AND_ISR, UPDATE_METADATA)
"""The requests between brokers with which a worker joins."""


def warm() -> None:
    for name in LATE_MODULES:
        with suppress(ImportError):  # uvloop is optional
            import_module(name)
    for key in STARTING:
        api = APIS[key]
        for message in (api.request, api.response):
            decoder(message, api.high)
            encoder(message, api.high)
