"""The public names of `penstock.sdk`."""

import subprocess
import sys

from penstock import sdk


def test_every_public_name_exists() -> None:
    assert set(sdk.__all__) == set(sdk._MODULES)
    assert all(getattr(sdk, name) is not None for name in sdk.__all__)


def test_a_broker_that_imports_an_assignor_loads_no_client() -> None:
    program = "import sys, penstock.sdk.assignor; sys.exit('confluent_kafka' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
