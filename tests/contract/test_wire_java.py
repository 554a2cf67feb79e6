"""Kafka's own classes read what we write and write the same bytes, for every message."""

import random
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from peers.oracle import Oracle
from penstock.wire.apis import APIS, Api
from penstock.wire.codec import decode, encode
from penstock.wire.schema import Message
from wire_values import ALL_VERSIONS, messages

pytestmark = pytest.mark.peer
