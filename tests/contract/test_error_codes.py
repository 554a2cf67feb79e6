"""Our error codes equal those of the Java client, by name and number."""

import pytest

from peers.oracle import Oracle
from penstock.errors import ErrorCode


@pytest.mark.peer
def test_our_error_codes_equal_those_of_the_java_client(java_oracle: Oracle) -> None:
    assert {code.name: code.value for code in ErrorCode} == java_oracle.errors()
