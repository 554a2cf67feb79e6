"""In which order flows run that run once: whoever reads a topic comes after those who fill it."""

from collections.abc import Sequence

from penstock.spark.pipeline.flow_spec import FlowSpec


def stages(flows: Sequence[FlowSpec]) -> list[list[FlowSpec]]:
    """Flows that may run side by side, stage by stage. Those that feed each other in a circle have
    no order, and run together at the end.
    """
    left, found = list(flows), []
    while left:
        ready = [each for each in left if not any(feeds(other, each) for other in left)]
        found.append(ready or left)
        left = [each for each in left if each not in found[-1]]
    return found


def feeds(flow: FlowSpec, reader: FlowSpec) -> bool:
    topic = reader.source.topic
    return topic is not None and topic in {flow.to.topic, flow.dead_letters}
