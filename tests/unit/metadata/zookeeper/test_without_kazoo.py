"""The error message without kazoo."""

import subprocess
import sys

from penstock.config.extra import install

WITHOUT_KAZOO = """
import sys

sys.modules["kazoo"] = None
from penstock.errors import ConfigError
import penstock.broker.app

try:
    import penstock.metadata.zookeeper.opening
except ConfigError as error:
    print(error)
"""


def test_without_kazoo_the_error_names_what_to_install() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_KAZOO], capture_output=True, text=True, check=True
    )
    assert install("cluster") in done.stdout
