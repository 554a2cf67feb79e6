"""The cleaning process: jobs come in on stdin, answers go out on stdout, a line of JSON each.

It writes nothing but `.cleaned` files, which a restart removes: it may be killed at any moment.
"""

import os
import sys
from collections.abc import Iterator
from queue import SimpleQueue
from threading import Thread
from typing import BinaryIO, NoReturn

import msgspec

from penstock.errors import KafkaError, StorageError
from penstock.log.compaction.cleaner import clean
from penstock.log.compaction.job import Answer, CleaningJob, Failed
from penstock.log.corrupt import CorruptFile
from penstock.log.disk import DiskFiles
from penstock.log.files import Files


def answers(files: Files, job: CleaningJob) -> Iterator[Answer]:
    """The answers of `clean`; a log that cannot be cleaned is one of them."""
    try:
        yield from clean(files, job)
    except (StorageError, KafkaError) as error:
        # A full disk may have room later; damaged bytes stay damaged.
        yield Failed(str(error), is_damage=isinstance(error, CorruptFile | KafkaError))


def main() -> None:
    jobs: SimpleQueue[bytes] = SimpleQueue()
    Thread(target=_receive, args=(sys.stdin.buffer, jobs), daemon=True).start()
    while True:
        job = msgspec.json.decode(jobs.get(), type=CleaningJob)
        for answer in answers(DiskFiles(), job):
            try:
                sys.stdout.buffer.write(msgspec.json.encode(answer) + b"\n")
                sys.stdout.buffer.flush()
            except BrokenPipeError:
                _stop()


def _receive(lines: BinaryIO, jobs: "SimpleQueue[bytes]") -> None:
    for line in lines:
        jobs.put(line)
    _stop()


def _stop() -> NoReturn:
    """The broker is gone: this process must not write into the next broker's directories.

    Whichever thread notices first ends it at once: a regular exit would wait for the other.
    """
    os._exit(0)


if __name__ == "__main__":
    main()
