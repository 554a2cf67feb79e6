"""What is told of a flow that Spark refuses."""

import pytest
from pyspark.errors import AnalysisException

from penstock.errors import ConfigError
from penstock.spark.pipeline.failure import PipelineFailed, first_lines
from penstock.spark.pipeline.flow_spec import FlowSpec, From, To
from penstock.spark.pipeline.run import named


def test_missing_delta_is_an_error_with_advice() -> None:
    flow = FlowSpec(name="lake", source=From(topic="a"), to=To(delta="lake"))
    words = r"flow 'lake': Spark has no Delta; .* --packages io.delta:delta-spark_"
    with pytest.raises(PipelineFailed, match=words), named(flow):
        raise AnalysisException("[DATA_SOURCE_NOT_FOUND] Failed to find the data source: delta.")


def test_other_errors_name_the_flow() -> None:
    flow = FlowSpec(name="lake", source=From(topic="a"), to=To(delta="lake"))
    with pytest.raises(PipelineFailed, match=r"flow 'lake': no such column$"), named(flow):
        raise AnalysisException("no such column\n\tat org.apache.spark.Something")
    with pytest.raises(ConfigError, match="flow 'lake': schema: none"), named(flow):
        raise ConfigError("schema: none")


def test_an_error_of_a_query_has_no_plan() -> None:
    said = (
        "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column with name `nope` cannot be resolved. "
        "Did you mean one of the following? [`id`]. SQLSTATE: 42703; line 1 pos 7;\n"
        "'Project ['nope]\n+- SubqueryAlias events\n   +- View (`events`, [id#41L])\n"
    )
    told = first_lines(said)
    assert told.startswith("[UNRESOLVED_COLUMN")
    assert told.endswith("[`id`]. SQLSTATE: 42703")
