"""`lab isr`: how replicas fall out of the in-sync set, and the consequences."""

from penstock.client.errors import BrokerRefused, RequestTimedOut
from penstock.errors import ErrorCode
from penstock.local.lab.high_watermark import numbered, read
from penstock.local.lab.narration import Narrator, ReplicaSnapshot
from penstock.local.lab.stage import ALL, stage

LAG_MS = 2_000


def in_sync(narrator: Narrator) -> None:
    """The in-sync set shrinks and grows; min.insync.replicas refuses what would be unsafe."""
    with stage({"replica.lag.time.max.ms": str(LAG_MS)}) as on:
        narrator.title(f"A follower that lags for longer than replica.lag.time.max.ms ({LAG_MS})")
        on.create("t", (0, 1, 2), {"min.insync.replicas": "2"})
        on.write("t", *numbered(3), acks=ALL)
        on.copied("t", 3)
        narrator.show("AR = ISR = 0,1,2", on.replicas("t"))
        on.pause(2)
        on.write("t", "m3")
        on.until("broker 1 to copy", lambda: on.ends("t") == {0: 4, 1: 4, 2: 3})
        narrator.show("broker 2 hangs: the HW waits for it", on.replicas("t"))
        on.until("broker 2 to fall out of sync", lambda: members(on.replicas("t")) == {0, 1})
        narrator.show("out of the ISR: the HW goes on without it", on.replicas("t"))
        read(narrator, on, "t", 4)

        narrator.title("Fewer in sync than min.insync.replicas=2: acks=all is refused")
        on.pause(1)
        on.write("t", "m4")
        on.until("broker 1 to fall out of sync", lambda: members(on.replicas("t")) == {0})
        try:
            on.write("t", "refused", acks=ALL)
        except BrokerRefused as refused:
            if refused.code != ErrorCode.NOT_ENOUGH_REPLICAS:
                raise
            narrator.say("the producer gets NOT_ENOUGH_REPLICAS; nothing was appended")
        else:
            raise RequestTimedOut("acknowledged by one replica alone")
        narrator.show("the leader is alone", on.replicas("t"))
        on.resume(1)
        on.resume(2)
        on.copied("t", 5)
        narrator.show("both catch up and are in sync again", on.replicas("t"))
        read(narrator, on, "t", 5)


def members(replicas: list[ReplicaSnapshot]) -> set[int]:
    return {each.broker for each in replicas if each.in_sync}
