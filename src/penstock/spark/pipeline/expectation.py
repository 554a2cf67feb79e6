"""Expectations of rows: those that break one are counted, dropped, or end the run."""

from dataclasses import dataclass
from enum import StrEnum

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from penstock.errors import ConfigError
from penstock.spark.pipeline.flow_spec import slug_of


class Otherwise(StrEnum):
    """What happens to a row that breaks an expectation."""

    KEEP = "keep"
    DROP = "drop"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Expectation:
    """A SQL condition that each row should meet. A row for which it is null breaks it."""

    name: str
    condition: str
    otherwise: Otherwise = Otherwise.KEEP

    def __post_init__(self) -> None:
        if not self.name or not self.condition:
            raise ConfigError("an expectation needs a name and a condition")

    @property
    def slug(self) -> str:
        return slug_of(self.name)

    @property
    def broken(self) -> Column:
        return ~F.coalesce(F.expr(self.condition).cast("boolean"), ~true())

    @property
    def reason(self) -> str:
        return f"expectation {self.name!r} is broken: {self.condition}"


def true() -> Column:
    return F.expr("true")


def enforced(rows: DataFrame, expectation: Expectation) -> DataFrame:
    """The rows that continue. An observed metric in the progress counts those that break it."""
    match expectation.otherwise:
        case Otherwise.FAIL:
            text = F.concat(
                F.lit(f"{expectation.reason}; the row: "),
                F.to_json(F.struct("*")),
            )
            return rows.where(
                F.when(expectation.broken, F.raise_error(text).cast("boolean")).otherwise(true())
            )
        case Otherwise.DROP:
            return passed(observed(rows, expectation), expectation)
        case Otherwise.KEEP:
            return observed(rows, expectation)


def broken(rows: DataFrame, expectation: Expectation) -> DataFrame:
    return rows.where(expectation.broken)


def passed(rows: DataFrame, expectation: Expectation) -> DataFrame:
    """The same rows as `enforced`, for a second query: counts nothing, and never fails."""
    if expectation.otherwise is Otherwise.DROP:
        return rows.where(~expectation.broken)
    return rows


def observed(rows: DataFrame, expectation: Expectation) -> DataFrame:
    return rows.observe(
        f"expect:{expectation.slug}",
        F.count(F.lit(1)).alias("rows"),
        F.count_if(expectation.broken).alias("broken"),
    )
