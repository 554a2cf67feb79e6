"""Pauses deliveries of a share-partition if all of them fail: the fault is not in the records.

Without it, a service that is down would take record after record to the delivery limit.
"""

from typing import NamedTuple


class DeliveryRules(NamedTuple):
    """The settings of a share group for its deliveries as a whole."""

    is_paused: bool = False
    failures: int = 0
    """This many failed deliveries in a row open the circuit breaker; 0: never."""
    pause_ms: int = 30_000


class CircuitBreaker:
    """Opens after `failures` failed deliveries in a row. After `pause_ms` one record is tried: if
    it is accepted, deliveries resume; if it fails, the pause begins again. Pure.
    """

    def __init__(self) -> None:
        self.failed_in_a_row = 0
        self.open_until_ms: int | None = None
        """When the pause ends; None: the breaker is closed."""
        self.tried: int | None = None
        """The offset of the record on trial; None if there is none."""

    def succeeded(self) -> None:
        self.failed_in_a_row, self.open_until_ms, self.tried = 0, None, None

    def failed(self, records: int, rules: DeliveryRules, now_ms: int) -> None:
        self.failed_in_a_row += records
        is_due = 0 < rules.failures <= self.failed_in_a_row
        if is_due and (self.open_until_ms is None or self.tried is not None):
            self.open_until_ms, self.tried = now_ms + rules.pause_ms, None

    def most(self, rules: DeliveryRules, now_ms: int) -> int | None:
        """How many records may be delivered now; None: any number."""
        if self.open_until_ms is None or rules.failures == 0:
            return None
        return 0 if now_ms < self.open_until_ms or self.tried is not None else 1

    def tries(self, offset: int) -> None:
        """Note that the record on trial is delivered."""
        if self.open_until_ms is not None:
            self.tried = offset

    def given_back(self) -> None:
        """End the trial without a result: a connection was lost, the record was deleted, or there
        is no record at that offset.
        """
        self.tried = None
