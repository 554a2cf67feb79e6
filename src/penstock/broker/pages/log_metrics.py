"""Log directories in `/metrics`: which are online, and how much space their disks have."""

import shutil
from collections.abc import Callable, Iterator

from penstock.http.prometheus import Metric, Sample, gauge, labels
from penstock.log.store import LogStore


def log_metrics(store: LogStore) -> dict[str, Metric]:
    def offline() -> Iterator[Sample]:
        for each in store.dirs:
            yield Sample(int(each.failure is not None), labels(logDirectory=str(each.path)))

    def disk(read: Callable[[tuple[int, int, int]], int]) -> Callable[[], Iterator[Sample]]:
        def samples() -> Iterator[Sample]:
            for each in store.online:
                try:
                    usage = shutil.disk_usage(each.path)
                except OSError:
                    continue  # the next write takes it offline
                yield Sample(read(usage), labels(path=str(each.path)))

        return samples

    manager, directory = "kafka_log_logmanager", "penstock_log_directory"
    return {
        f"{manager}_offlinelogdirectorycount": gauge(
            "Log directories that failed.", lambda: len(store.dirs) - len(store.online)
        ),
        f"{manager}_logdirectoryoffline": gauge("1 where a log directory failed.", offline),
        f"{directory}_free_bytes": gauge(
            "Free bytes of a log directory's disk.", disk(lambda usage: usage[2])
        ),
        f"{directory}_disk_bytes": gauge(
            "Size of a log directory's disk.", disk(lambda usage: usage[0])
        ),
        "penstock_log_stray_partitions": gauge(
            "Logs that may not be served, kept as -stray until an operator removes them.",
            store.count_stray,
        ),
    }
