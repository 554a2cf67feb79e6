"""A process of Kafka Streams that is back with the other protocol."""

from penstock.coordinator.group.streams.draft import StreamsGroupDraft


def replace_process(draft: StreamsGroupDraft, process_id: str, *, was_classic: bool) -> None:
    """Remove what the process was before, without waiting for time-outs.

    Its id is kept in its directory of state, which the former process has let go: it has ended.
    """
    gone = [
        each.id
        for each in draft.group.members.values()
        if each.process_id == process_id and each.is_classic is was_classic
    ]
    if gone:
        draft.remove(gone)
