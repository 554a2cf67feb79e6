"""Where Penstock differs from Kafka on purpose, and why. An entry that no case needs must be
removed.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from differential.flat import ABSENT, Difference

KRAFT = "a KRaft controller's or raft's API, which no client calls"
LATER = "not served yet"
FEATURES = "of Kafka's own metadata log, or of coordinators that are not served yet"
ELIGIBLE_LEADERS = (
    "a new Kafka cluster with eligible leader replicas writes min.insync.replicas into its dynamic"
    " settings; ours is the default"
)
DEAD_LETTERS = "level 2 of share groups has dead letters, new in 4.4"
THROWN = "an exception in Kafka; we refuse each partition"
STRICT = "bytes that break the protocol end the connection; Kafka's readers let some pass"
EPOCH = "a producer without an epoch or a sequence could not be told from others"
REFUSED_START = "told with every refusal of a batch that was read; Kafka does not for some"
CUT_BATCH = "Kafka's last stable offset is then that of the batch, before the log's start"
KEPT_PARTITIONS = "commits of an epoch before are refused, also of what a member kept (KIP-1251)"
SAYS_WHY = "every refusal says why"
OUR_CHECKS = "found by a check of our own, which tells more"
NAMES_MEMBER = "says which member of the classic group is in the way"
RE2 = "the words of the library for regular expressions"
EXCEPTIONS = "the text of a Java exception"
COMES_AGAIN = "a static member that was fenced comes again under its own id; Kafka has it wait"
AT_ONCE = "partitions come with the first heartbeat; Kafka assigns them with the next"
RELEASED = "what a request releases may come back with its response; Kafka is slower"
OPEN_BY_ANOTHER = "a fenced producer does not end the transaction of the one that replaced it"
OFFSET_DELTA = "Kafka stores such a record, at an offset that the next batch has too"


@dataclass(frozen=True)
class Expected:
    """Differences at these paths of these cases; both are shell patterns."""

    cases: str
    paths: str
    reason: str
    always: bool = True
    """False: Kafka's own answer varies."""
    silent: bool = False
    """Covers only paths where Kafka sends no text; where it does, ours is the same."""

    def covers(self, case: str, path: str, kafka: str) -> bool:
        if self.silent and kafka not in {"None", "''"}:
            return False
        return fnmatchcase(case, self.cases) and fnmatchcase(path, self.paths)


def _unserved(reason: str, *keys: int) -> Iterator[Expected]:
    for key in keys:
        yield Expected("ApiVersions: *", f"api_keys[[]{key}].*", reason)


def _features(*names: str) -> Iterator[Expected]:
    for name in names:
        for kind in ("supported", "finalized"):
            yield Expected("ApiVersions: *", f"{kind}_features[[]{name}.version].*", FEATURES)
    yield Expected("ApiVersions: *", "supported_features.count", FEATURES)
    yield Expected("ApiVersions: *", "finalized_features.count", FEATURES)


EXPECTED: tuple[Expected, ...] = (
    *_unserved(LATER, 17, *range(29, 32), 36, *range(38, 42), *range(48, 52)),
    *_unserved(LATER, 55, 64),
    *_unserved("new in 4.4", 93),
    *_unserved(KRAFT, 80, 81, *range(83, 88)),
    Expected("ApiVersions: *", "api_keys.count", LATER),
    Expected("ApiVersions: *", "api_keys[[]18].max_version", "we serve version 5, new in 4.4"),
    Expected("ApiVersions: *", "api_keys[[]28].max_version", "we serve version 6, new in 4.4"),
    Expected("ApiVersions: *", "api_keys[[]42].max_version", "we serve version 3, new in 4.4"),
    Expected("ApiVersions: *", "api_keys[[]88].max_version", "we serve version 1, new in 4.4"),
    Expected("ApiVersions: *", "api_keys[[]89].max_version", "we serve version 1, new in 4.4"),
    Expected("ApiVersions: *", "*_features[[]share.version].max_version*", DEAD_LETTERS),
    Expected(
        "ApiVersions: *",
        "finalized_features[[]share.version].min_*",
        DEAD_LETTERS,
        always=False,
    ),
    Expected("UpdateFeatures: *", "*_features[[]share.version].m*", DEAD_LETTERS, always=False),
    Expected(
        "StreamsGroupHeartbeat: an endpoint",
        "*endpoint_information_epoch",
        "the first assignment counts too",
    ),
    *_features("metadata", "eligible.leader.replicas"),
    Expected("ApiVersions: *", "supported_features[[]kraft.version].*", FEATURES),
    # Returned once the quorum has agreed on it, some time after the broker starts to serve.
    Expected("ApiVersions: *", "finalized_features[[]kraft.version].*", FEATURES, always=False),
    Expected("UpdateFeatures: one of two refused", "error_message", "the first one is named"),
    Expected("UpdateFeatures: down as old*", "*", "Kafka 4 passes allow_downgrade (v0) over"),
    Expected("UpdateFeatures: *", "results[[]*].error_message", "nothing to say of a success"),
    Expected("*", "*.configs[[]min.insync.replicas].config_source", ELIGIBLE_LEADERS),
    Expected("*", "*.configs[[]min.insync.replicas].synonyms*", ELIGIBLE_LEADERS),
    Expected("Produce: *", "*.error_message", SAYS_WHY, silent=True),
    Expected("Produce: magic *", "*.error_message", OUR_CHECKS),
    Expected("Produce: *batch length*", "*.error_message", OUR_CHECKS),
    Expected("Fetch: transaction, *", "responses[[]~t].*.error_message", SAYS_WHY, silent=True),
    Expected("Fetch: transaction, *", "responses[[]~t].*.log_start_offset", REFUSED_START),
    Expected("Fetch: transaction, begun before*", "*.offset", CUT_BATCH),
    Expected("Fetch: transaction, begun before*", "*.last_stable_offset", CUT_BATCH),
    Expected("Fetch: transaction, begun before*", "*.aborted_transactions*", "none, null or empty"),
    Expected("Produce: a producer of epoch -1", "*", EPOCH),
    Expected("Produce: a record whose offset delta is wrong", "*", OFFSET_DELTA),
    Expected("Produce: bytes, records of size -2", "*", STRICT),
    Expected("Metadata: bytes, an array of size -2", "*", STRICT),
    Expected("Metadata: bytes, a topic that is no utf-8", "*", STRICT),
    Expected("ApiVersions: bytes, a client id that is no utf-8", "*", STRICT),
    Expected("Metadata: id zero and no name", "*", "an exception in Kafka: we know no such topic"),
    Expected(
        "InitProducerId: transactional, an old epoch while one is open",
        "error_code",
        OPEN_BY_ANOTHER,
    ),
    Expected("OffsetForLeaderEpoch: epoch -2", "*", "there is no epoch below 0"),
    Expected("Fetch: isolation level *", "*", THROWN),
    Expected("Fetch: a negative *", "*", THROWN),
    Expected("Fetch: session, its topic deleted", "*.error_code", "no topic has that id any more"),
    Expected("Produce: the same partition twice", "*", "each batch has its answer"),
    Expected("JoinGroup: a group of the consumer *", "*member_id", "a refusal names the member"),
    Expected("JoinGroup: a mixed group *", "*member_id", "a refusal names the member"),
    Expected("OffsetCommit: in a mixed group, of another generation", "*", KEPT_PARTITIONS),
    Expected("ConsumerGroupHeartbeat: a static member joins again", "*", COMES_AGAIN),
    Expected("ConsumerGroupHeartbeat: join no topics", "*", "a first member begins an epoch"),
    Expected(
        "ConsumerGroupDescribe: a group without a name", "*.error_message", SAYS_WHY, silent=True
    ),
    Expected("ConsumerGroupHeartbeat: shares *", "error_message", NAMES_MEMBER),
    Expected("ConsumerGroupHeartbeat: join with what is no expression", "error_message", RE2),
    Expected("CreateTopics: with throttled replicas that are none", "*.error_message", OUR_CHECKS),
    Expected("IncrementalAlterConfigs: *threads*", "*.error_message", EXCEPTIONS),
    Expected("IncrementalAlterConfigs: num.replica.fetchers*", "*.error_message", EXCEPTIONS),
    Expected("DescribeProducers: *", "*.error_message", "every refusal says why, or none"),
    Expected("Share*", "*error_message", SAYS_WHY, silent=True),
    Expected("ShareGroupDescribe: many", "*", "in the order of the request"),
    Expected("ShareGroupHeartbeat: *", "*member_epoch", AT_ONCE),
    Expected("ShareGroupHeartbeat: *", "*assignment*", AT_ONCE),
    Expected("DescribeShareGroupOffsets: *", "*member_epoch", AT_ONCE),
    Expected("DescribeShareGroupOffsets: *", "*assignment*", AT_ONCE),
    Expected("AlterShareGroupOffsets: *", "*member_epoch", AT_ONCE),
    Expected("AlterShareGroupOffsets: *", "*assignment*", AT_ONCE),
    Expected("DeleteShareGroupOffsets: *", "*member_epoch", AT_ONCE),
    Expected("DeleteShareGroupOffsets: *", "*assignment*", AT_ONCE),
    Expected("ShareFetch: release and fetch", "*", RELEASED, always=False),
    Expected("ShareFetch: types for each record", "*", RELEASED, always=False),
    Expected("ShareFetch: a topic that is not there", "*", THROWN),
    Expected("DescribeShareGroupOffsets: one that is not there", "*", THROWN),
    Expected("DescribeConfigs: all brokers", "results[[]4].configs*", ELIGIBLE_LEADERS),
)


class Expectations:
    """Separates expected from other differences, and remembers which entries were needed."""

    def __init__(self, entries: Iterable[Expected] = EXPECTED) -> None:
        self._entries = tuple(entries)
        self.needless = [each for each in self._entries if each.always]
        self.cases_seen = 0

    def unexpected(self, case: str, differences: list[Difference]) -> list[Difference]:
        self.cases_seen += 1
        return [found for found in differences if not self._is_expected(case, found)]

    def _is_expected(self, case: str, found: Difference) -> bool:
        path = found[0].partition(": ")[2] or found[0]
        for entry in self._entries:
            if entry.covers(case, path, found[1]):
                if entry in self.needless:
                    self.needless.remove(entry)
                return True
        return _is_refusal_instead_of_a_bug(*found)


def _is_refusal_instead_of_a_bug(path: str, kafka: str, other: str) -> bool:
    """UNKNOWN_SERVER_ERROR is an unforeseen exception in Kafka: any error code is as good."""
    is_code = path.endswith("error_code") and other != ABSENT
    return is_code and kafka.startswith("-1 ") and not other.startswith("0 ")
