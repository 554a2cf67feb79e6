"""The limits of one fetch response. Pure."""


class FetchBudget:
    """Counts the bytes and slices of a response, in the order in which partitions are read.

    Each slice holds a file open until it is sent, so their number is limited too.
    """

    def __init__(self, max_bytes: int, min_bytes: int, max_slices: int) -> None:
        self._max_bytes, self._max_slices = max_bytes, max_slices
        self._min_bytes = min(min_bytes, max_bytes)
        self.clear()

    def clear(self) -> None:
        self.size_bytes = 0
        self._left = self._max_bytes
        self._slices = 0
        self._is_full = False

    @property
    def has_slices_left(self) -> bool:
        return self._slices < self._max_slices

    @property
    def is_empty(self) -> bool:
        """Nothing is taken yet: the first batch is sent whole, even if it exceeds every limit."""
        return self.size_bytes == 0

    @property
    def is_enough(self) -> bool:
        """The response is worth sending: it has `min_bytes`, or more would not fit."""
        return self._is_full or self.size_bytes >= self._min_bytes

    def room(self, max_bytes: int) -> int:
        """The bytes left for a partition whose own limit is `max_bytes`."""
        return min(max_bytes, self._left)

    def take(self, size_bytes: int) -> None:
        self.size_bytes += size_bytes
        self._left = max(0, self._left - size_bytes)
        self._slices += 1

    def give_back(self, size_bytes: int) -> None:
        """Undo `take`: the partition is about to be read again."""
        self.size_bytes -= size_bytes
        self._left += size_bytes
        self._slices -= 1

    def leave_out(self, room: int) -> None:
        """Note that a partition has records, but no batch fits into its room.

        A batch that does not fit now will not fit later, so the room counts as if it were filled,
        as in Kafka.
        """
        self._is_full |= self.size_bytes + room >= self._min_bytes

    def leave_out_slice(self) -> None:
        """Note that a partition has records, but no slice is left; the next fetch reads it."""
        self._is_full = True
