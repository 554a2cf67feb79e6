"""`lab hw`: a consumer sees only what every in-sync replica has."""

from penstock.client.errors import BrokerRefused, RequestTimedOut
from penstock.errors import ErrorCode
from penstock.local.lab.narration import Narrator
from penstock.local.lab.stage import ALL, LabCluster, stage


def high_watermark(narrator: Narrator) -> None:
    """High watermark and log end: which records consumers see while followers lag."""
    with stage({}) as on:
        nine_of_which_six(narrator, on)
        one_follower_behind(narrator, on)
        two_followers_behind(narrator, on)
        acknowledged_last(narrator, on)


def nine_of_which_six(narrator: Narrator, on: LabCluster) -> None:
    narrator.title("Nine records, LEO 9, HW 6: a consumer reads offsets 0 to 5")
    on.create("nine", (0, 1, 2))
    on.write("nine", *numbered(6), acks=ALL)
    on.copied("nine", 6)
    narrator.show("six records, on all replicas", on.replicas("nine"))
    on.pause(2)
    on.write("nine", *numbered(9)[6:])
    on.until("broker 1 to copy", lambda: on.ends("nine") == {0: 9, 1: 9, 2: 6})
    narrator.show("broker 2 hangs; three more records with acks=1", on.replicas("nine"))
    read(narrator, on, "nine", 6)
    on.resume(2)
    on.copied("nine", 9)
    narrator.show("broker 2 goes on", on.replicas("nine"))
    read(narrator, on, "nine", 9)


def one_follower_behind(narrator: Narrator, on: LabCluster) -> None:
    narrator.title("Leader 5, followers 5 and 4: HW 4, then 5")
    on.create("five", (0, 1, 2))
    on.write("five", *numbered(4), acks=ALL)
    on.copied("five", 4)
    on.pause(2)
    on.write("five", *numbered(5)[4:])
    on.until("broker 1 to copy", lambda: on.ends("five") == {0: 5, 1: 5, 2: 4})
    narrator.show("one record more than broker 2 has", on.replicas("five"))
    read(narrator, on, "five", 4)
    on.resume(2)
    on.copied("five", 5)
    narrator.show("broker 2 has it too", on.replicas("five"))
    read(narrator, on, "five", 5)


def two_followers_behind(narrator: Narrator, on: LabCluster) -> None:
    narrator.title("Leader 10, followers 5 and 3: HW 3, the smallest of the in-sync set")
    on.create("ten", (0, 1, 2))
    on.write("ten", *numbered(3), acks=ALL)
    on.copied("ten", 3)
    on.pause(2)
    on.write("ten", *numbered(5)[3:])
    on.until("broker 1 to copy", lambda: on.ends("ten") == {0: 5, 1: 5, 2: 3})
    on.pause(1)
    on.write("ten", *numbered(10)[5:])
    on.until("the leader to have ten", lambda: on.ends("ten") == {0: 10, 1: 5, 2: 3})
    narrator.show("both followers hang, one earlier than the other", on.replicas("ten"))
    read(narrator, on, "ten", 3)
    on.resume(1)
    on.resume(2)
    on.copied("ten", 10)
    narrator.show("both go on", on.replicas("ten"))


def acknowledged_last(narrator: Narrator, on: LabCluster) -> None:
    narrator.title("acks=all: the leader waits for the in-sync set, moves the HW, then answers")
    on.create("acked", (0, 1, 2))
    on.write("acked", "a", acks=ALL)
    on.copied("acked", 1)
    on.pause(2)
    try:
        on.write("acked", "b", acks=ALL, timeout_ms=1000)
    except BrokerRefused as refused:
        if refused.code != ErrorCode.REQUEST_TIMED_OUT:
            raise
        narrator.say("after 1 s without broker 2 the producer gets REQUEST_TIMED_OUT")
    else:
        raise RequestTimedOut("acknowledged without broker 2")
    narrator.show("the record is on the leader, but not committed", on.replicas("acked"))
    on.resume(2)
    on.copied("acked", 2)
    on.write("acked", "c", acks=ALL)
    on.copied("acked", 3)
    narrator.show("broker 2 is back: acks=all is answered at once", on.replicas("acked"))


def read(narrator: Narrator, on: LabCluster, topic: str, count: int) -> None:
    found = on.readable(topic)
    if found != numbered(count):
        raise RequestTimedOut(f"a consumer of {topic} read {found}, and not {count} records")
    narrator.say(f"a consumer reads offsets 0 to {count - 1}")


def numbered(count: int) -> list[str]:
    return [f"m{number}" for number in range(count)]
