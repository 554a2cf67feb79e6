"""`lab unclean`: a loss of records that leader epochs cannot prevent."""

from penstock.client.errors import RequestTimedOut
from penstock.local.lab.epoch import led_by
from penstock.local.lab.in_sync import LAG_MS, members
from penstock.local.lab.narration import Narrator
from penstock.local.lab.stage import ALL, LabCluster, stage


def unclean(narrator: Narrator) -> None:
    """unclean.leader.election.enable: lose committed records and serve, or wait for them."""
    with stage({"replica.lag.time.max.ms": str(LAG_MS)}) as on:
        narrator.title("unclean.leader.election.enable=false: the partition waits")
        alone_with_it(narrator, on, "safe", "false")
        on.until("the election to fail", lambda: on.leaders("safe") == {-1})
        narrator.show("nobody leads: broker 1 lacks a committed record", on.replicas("safe"))
        on.start(0)
        on.until("broker 0 to lead again", lambda: led_by(0, on.replicas("safe")))
        on.copied("safe", 2)
        narrator.show("broker 0 is back and leads: nothing is lost", on.replicas("safe"))
        expect(narrator, on, "safe", ["a", "committed"])
    with stage({"replica.lag.time.max.ms": str(LAG_MS)}) as on:
        narrator.title("unclean.leader.election.enable=true: the first alive replica leads")
        alone_with_it(narrator, on, "fast", "true")
        on.until("broker 1 to lead", lambda: led_by(1, on.replicas("fast")))
        on.write("fast", "other")
        narrator.show("broker 1 leads although it lacks a record", on.replicas("fast"))
        on.start(0)
        on.copied("fast", 2)
        narrator.show("broker 0 follows it, and truncates what was committed", on.replicas("fast"))
        expect(narrator, on, "fast", ["a", "other"])


def alone_with_it(narrator: Narrator, on: LabCluster, topic: str, allowed: str) -> None:
    on.create(topic, (0, 1), {"unclean.leader.election.enable": allowed})
    on.write(topic, "a", acks=ALL)
    on.copied(topic, 1)
    on.pause(1)
    on.write(topic, "committed")
    on.until("broker 1 to fall out of sync", lambda: members(on.replicas(topic)) == {0})
    on.until("the high watermark", lambda: on.replicas(topic)[0].high_watermark == 2)
    narrator.show("broker 1 is out of sync: broker 0 alone commits", on.replicas(topic))
    on.kill(0)
    on.resume(1)
    narrator.say("broker 0 is killed, broker 1 goes on")


def expect(narrator: Narrator, on: LabCluster, topic: str, values: list[str]) -> None:
    if (found := on.readable(topic)) != values:
        raise RequestTimedOut(f"a consumer of {topic} read {found}, not {values}")
    narrator.say(f"a consumer reads: {' '.join(values)}")
