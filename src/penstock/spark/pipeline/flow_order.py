"""The order of flows that run once: a flow that reads a topic runs after those that fill it."""

from collections.abc import Sequence

from penstock.spark.pipeline.flow_spec import FlowSpec


def stages(flows: Sequence[FlowSpec]) -> list[list[FlowSpec]]:
    """Flows by stage; those of a stage may run concurrently. Flows in a cycle run together at the
    end.
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
