"""Which reads of a flow commit to its group."""

from penstock.spark.pipeline.flow import _for_letters
from penstock.spark.pipeline.flow_spec import From


def test_a_read_for_dead_letters_never_has_a_group() -> None:
    source = From(topic="t", group="g", options={"GroupId": "g", "maxOffsetsPerTrigger": "5"})
    assert _for_letters(source) == From(
        topic="t", options={"maxOffsetsPerTrigger": "5", "includeHeaders": "true"}
    )
