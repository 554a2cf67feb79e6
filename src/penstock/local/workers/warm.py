"""What each worker would import and compile as it starts: done once, before they are forked."""

from contextlib import suppress
from importlib import import_module

from penstock.wire.apis import APIS
from penstock.wire.codec import decoder, encoder
from penstock.wire.header import API_VERSIONS

LATE_MODULES = ("uvloop", "encodings.idna")
"""Imported by a loop and by the first name that is resolved."""
LEADER_AND_ISR, UPDATE_METADATA = 4, 6
STARTING = (API_VERSIONS, LEADER_AND_ISR, UPDATE_METADATA)
"""Requests between brokers by which a worker joins."""


def warm() -> None:
    for name in LATE_MODULES:
        with suppress(ImportError):  # uvloop is not everywhere
            import_module(name)
    for key in STARTING:
        api = APIS[key]
        for message in (api.request, api.response):
            decoder(message, api.high)
            encoder(message, api.high)
