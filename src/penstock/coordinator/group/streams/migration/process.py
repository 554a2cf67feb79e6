"""Replaces the members of a Kafka Streams process that restarted with the other protocol."""

from penstock.coordinator.group.streams.draft import StreamsGroupDraft


def replace_process(draft: StreamsGroupDraft, process_id: str, *, was_classic: bool) -> None:
    """Remove the members of the former process without waiting for their timeouts.

    The process id is stored in the state directory, which the former process has released: it has
    ended.
    """
    gone = [
        each.id
        for each in draft.group.members.values()
        if each.process_id == process_id and each.is_classic is was_classic
    ]
    if gone:
        draft.remove(gone)
