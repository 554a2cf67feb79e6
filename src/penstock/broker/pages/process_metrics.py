"""The process in `/metrics`: CPU, memory, files, disk traffic, the event loop."""

import gc
import os
from collections.abc import Callable, Iterator

from penstock.broker.pages.loop_lag import LoopLag
from penstock.http.prometheus import Metric, Sample, counter, gauge, labels

PROC = "/proc/self"


def process_metrics(loop: LoopLag) -> dict[str, Metric]:
    def collections() -> Iterator[Sample]:
        for generation, stats in enumerate(gc.get_stats()):
            yield Sample(stats["collections"], labels(generation=str(generation)))

    def cpu_seconds() -> float:
        times = os.times()
        return times.user + times.system

    idle = "Share of time for which the event loop, which serves all requests, had nothing to do."
    found = {
        "process_cpu_seconds_total": counter("CPU time.", cpu_seconds),
        "python_gc_collections_total": counter("Runs of the garbage collector.", collections),
        "penstock_event_loop_lag_seconds": gauge(
            "The greatest delay of the event loop within the last minute.",
            lambda: loop.greatest_ms / 1000,
        ),
        "kafka_network_socketserver_networkprocessoravgidle_percent": gauge(
            idle, lambda: loop.idle
        ),
        "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent": gauge(
            idle, lambda: loop.idle
        ),
    }
    if os.path.isdir(PROC):  # noqa: PTH112  not worth importing pathlib
        found |= {
            "process_open_fds": gauge("Open files.", lambda: len(os.listdir(f"{PROC}/fd"))),  # noqa: PTH208
            "process_resident_memory_bytes": gauge("Memory.", _resident_bytes),
            "kafka_server_kafkaserver_linux_disk_read_bytes": counter(
                "Bytes that the process read from disks.", _disk("read_bytes")
            ),
            "kafka_server_kafkaserver_linux_disk_write_bytes": counter(
                "Bytes that the process wrote to disks.", _disk("write_bytes")
            ),
        }
    return found


def _resident_bytes() -> int:
    with open(f"{PROC}/statm", encoding="ascii") as file:  # noqa: PTH123
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _disk(field: str) -> Callable[[], Iterator[Sample]]:
    def samples() -> Iterator[Sample]:
        try:
            with open(f"{PROC}/io", encoding="ascii") as file:  # noqa: PTH123
                found = dict(line.split(": ") for line in file)
        except OSError:
            return  # some containers deny access
        yield Sample(int(found[field]))

    return samples
