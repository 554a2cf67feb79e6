"""Narrates a scenario: what happens, and the replicas after each step."""

from collections.abc import Callable, Sequence

from msgspec import Struct


class ReplicaSnapshot(Struct, frozen=True):
    """One replica at one moment; unknown numbers are None."""

    broker: int
    role: str
    log_end_offset: int | None
    high_watermark: int | None
    in_sync: bool
    records: tuple[str, ...] = ()


class NarratedStep(Struct, frozen=True):
    """A narrated step and the replicas after it."""

    text: str
    replicas: tuple[ReplicaSnapshot, ...]


class Narrator:
    """Prints a scenario line by line, and records its steps."""

    def __init__(self, echo: Callable[[str], object] = print) -> None:
        self._echo = echo
        self.steps: list[NarratedStep] = []

    def title(self, text: str) -> None:
        self._echo(f"\n== {text}")

    def say(self, text: str) -> None:
        self._echo(f"   {text}")

    def show(self, text: str, replicas: Sequence[ReplicaSnapshot]) -> None:
        """Narrate a step, with one line per replica."""
        self.steps.append(NarratedStep(text, tuple(replicas)))
        self._echo(f"-> {text}")
        for each in replicas:
            end, mark = _number(each.log_end_offset), _number(each.high_watermark)
            sync = "ISR" if each.in_sync else "OSR"
            records = f"  {' '.join(each.records)}" if each.records else ""
            self._echo(
                f"     broker {each.broker}  {each.role:<8}  {sync}  LEO {end:>2}  HW {mark:>2}"
                f"{records}"
            )


def _number(value: int | None) -> str:
    return "?" if value is None else str(value)
