"""Reads a table batch by batch, as a query on `penstock_table` does."""

from penstock.spark.connector.table_source import TableFollower


class Following:
    """A follower and its position. The table's first column is `id`."""

    def __init__(self, url: str, table: str, increasing: str) -> None:
        self.follower = TableFollower(url, table, increasing)
        self.at = self.follower.initialOffset()

    def ids(self) -> list[int]:
        end = self.follower.latestOffset(self.at, self.follower.getDefaultReadLimit())
        parts, self.at = self.follower.partitions(self.at, end), end
        return [row[0] for part in parts for row in self.follower.read(part)]
