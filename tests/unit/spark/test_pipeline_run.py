"""Errors of a flow that Spark refuses."""

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
    reported = first_lines(said)
    assert reported.startswith("[UNRESOLVED_COLUMN")
    assert reported.endswith("[`id`]. SQLSTATE: 42703")


def test_an_error_of_ours_has_no_traceback() -> None:
    """Spark reports an error of a data source with its traceback, which hides the message."""
    said = (
        "(STREAM_FAILED) [PYTHON_STREAMING_DATA_SOURCE_RUNTIME_ERROR] Failed when Python streaming "
        "data source perform latestOffset: Traceback (most recent call last):\n"
        '  File "stream_reader.py", line 156, in _ends\n'
        "penstock.client.errors.BrokerRefused: topic t does not exist: UNKNOWN_TOPIC_OR_PARTITION\n"
        "\nDuring handling of the above exception, another exception occurred:\n\n"
        "Traceback (most recent call last):\n"
        + '  File "worker.py", line 1, in main\n'
        * 9
        + "penstock.spark.source.data_loss.DataLoss: t-0 [3, 5): offsets 3 to 4 are gone. "
        "SQLSTATE: 38000\n\n\tat org.apache.spark.Something"
    )
    assert first_lines(said) == "t-0 [3, 5): offsets 3 to 4 are gone."


@pytest.mark.parametrize("frames", [1, 20])
def test_a_users_error_is_shown_even_if_one_of_ours_caused_it(frames: int) -> None:
    said = (
        "[X] Job aborted: Traceback (most recent call last):\n"
        + '  File "mine.py", line 7, in send\n' * frames
        + "penstock.client.errors.BrokerRefused: topic t does not exist\n"
        "\nThe above exception was the direct cause of the following exception:\n\n"
        "Traceback (most recent call last):\n"
        '  File "mine.py", line 9, in send\n'
        "mine.OrderLost: order 7 was not sent\n\n\tat org.apache.spark.Something"
    )
    reported = first_lines(said).splitlines()
    assert reported[0].startswith("[X] Job aborted")
    assert reported[-1] == "mine.OrderLost: order 7 was not sent"
    assert len(reported) <= 12
