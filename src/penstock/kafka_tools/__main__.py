"""`python -m penstock.kafka_tools kafka-topics.sh --list …`, which the scripts in `bin/` call."""

import sys

from penstock.kafka_tools.entry import run

if __name__ == "__main__":
    del sys.argv[0]  # the script's name is the first argument
    run()
