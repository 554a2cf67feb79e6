#include "protocol.h"

#include <string.h>

enum { PRODUCE = 0, FETCH = 1, METADATA = 3 };
enum { CORRELATION_AT = 8 };
enum { BATCH_LENGTH_AT = 8, BATCH_MAGIC_AT = 16, LAST_OFFSET_DELTA_AT = 23, BATCH_HEADER = 61 };

/* -- writing ------------------------------------------------------------------------------- */

static void put(struct request *r, const void *data, size_t size) {
    if (r->head_size + size > sizeof r->head) die("the topic name is too long");
    memcpy(r->head + r->head_size, data, size);
    r->head_size += size;
}

static void write_integer(uint8_t *at, uint64_t value, int size) {
    for (int i = size - 1; i >= 0; i--, value >>= 8) at[i] = (uint8_t)value;
}

static void integer(struct request *r, int64_t value, int size) {
    uint8_t bytes[8];
    write_integer(bytes, (uint64_t)value, size);
    put(r, bytes, (size_t)size);
}

static void uvarint(struct request *r, uint64_t value) {
    for (; value > 127; value >>= 7) integer(r, (int64_t)((value & 127) | 128), 1);
    integer(r, (int64_t)value, 1);
}

static void compact_string(struct request *r, const char *text) {
    uvarint(r, strlen(text) + 1);
    put(r, text, strlen(text));
}

static void array_of_one(struct request *r) { uvarint(r, 2); }
static void no_tags(struct request *r) { uvarint(r, 0); }

static void header(struct request *r, int key, int version) {
    memset(r, 0, sizeof *r);
    integer(r, 0, 4); /* the frame's size, see framed() */
    integer(r, key, 2);
    integer(r, version, 2);
    integer(r, 0, 4); /* correlation id */
    integer(r, 4, 2);
    put(r, "load", 4);
    no_tags(r);
}

static void framed(struct request *r) {
    write_integer(r->head, r->head_size + r->batch_size + r->tail_size - 4, 4);
}

void produce_request(struct request *r, const struct options *options) {
    header(r, PRODUCE, 9);
    uvarint(r, 0); /* no transactional id */
    integer(r, options->acks, 2);
    integer(r, 30000, 4); /* timeout, ms */
    array_of_one(r);
    compact_string(r, options->topic);
    array_of_one(r);
    r->partition_at = r->head_size;
    integer(r, 0, 4);
    uvarint(r, options->batch_size + 1);
    r->batch = options->batch;
    r->batch_size = options->batch_size;
    r->tail_size = 3; /* no tags: of the partition, the topic, the request */
    framed(r);
}

void fetch_request(struct request *r, const struct options *options, int max_wait_ms) {
    header(r, FETCH, 12);
    integer(r, -1, 4); /* replica id: a consumer */
    integer(r, max_wait_ms, 4);
    integer(r, 1, 4); /* min bytes */
    integer(r, options->max_bytes, 4);
    integer(r, 0, 1);  /* read uncommitted */
    integer(r, 0, 4);  /* no session */
    integer(r, -1, 4); /* session epoch: do not open one */
    array_of_one(r);
    compact_string(r, options->topic);
    array_of_one(r);
    r->partition_at = r->head_size;
    integer(r, 0, 4);
    integer(r, -1, 4); /* current leader epoch unknown */
    r->offset_at = r->head_size;
    integer(r, 0, 8);
    integer(r, -1, 4); /* last fetched epoch */
    integer(r, -1, 8); /* log start offset */
    integer(r, options->max_bytes, 4);
    no_tags(r); /* of the partition */
    no_tags(r); /* of the topic */
    uvarint(r, 1);         /* no forgotten topics */
    compact_string(r, ""); /* rack */
    no_tags(r);
    framed(r);
}

void metadata_request(struct request *r, const struct options *options) {
    header(r, METADATA, 12);
    array_of_one(r);
    integer(r, 0, 8); /* topic id: by name */
    integer(r, 0, 8);
    compact_string(r, options->topic);
    no_tags(r);
    integer(r, 0, 1); /* create no topic */
    integer(r, 0, 1); /* no authorized operations */
    no_tags(r);
    framed(r);
}

void set_correlation(struct request *r, int32_t id) {
    write_integer(r->head + CORRELATION_AT, (uint32_t)id, 4);
}

void set_partition(struct request *r, int32_t partition) {
    write_integer(r->head + r->partition_at, (uint32_t)partition, 4);
}

void set_offset(struct request *r, int64_t offset) {
    write_integer(r->head + r->offset_at, (uint64_t)offset, 8);
}

/* -- reading ------------------------------------------------------------------------------- */

struct reader {
    const uint8_t *at, *end;
};

static const uint8_t *skip(struct reader *in, uint64_t size) {
    if ((uint64_t)(in->end - in->at) < size) die("the answer is too short");
    const uint8_t *here = in->at;
    in->at += size;
    return here;
}

static int64_t big_endian(const uint8_t *at, int size) {
    uint64_t value = (at[0] & 128) ? UINT64_MAX : 0;
    for (int i = 0; i < size; i++) value = value << 8 | at[i];
    return (int64_t)value;
}

static int64_t read_integer(struct reader *in, int size) {
    return big_endian(skip(in, (uint64_t)size), size);
}

static uint64_t read_uvarint(struct reader *in) {
    uint64_t value = 0;
    for (int shift = 0; shift < 63; shift += 7) {
        uint8_t byte = *skip(in, 1);
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) return value;
    }
    die("the answer has an endless length");
}

/* Compact lengths are stored plus one, so that zero can mean null. */
static uint64_t read_length(struct reader *in) {
    uint64_t length = read_uvarint(in);
    return length ? length - 1 : 0;
}

static void skip_string(struct reader *in) { skip(in, read_length(in)); }

static void skip_tags(struct reader *in) {
    for (uint64_t count = read_uvarint(in); count; count--) {
        read_uvarint(in);
        skip(in, read_uvarint(in));
    }
}

static void expect_one(struct reader *in, const char *what) {
    uint64_t found = read_length(in);
    if (found != 1) die("the answer has %llu %s, not one", (unsigned long long)found, what);
}

static struct reader body(const uint8_t *frame, size_t size) {
    struct reader in = {frame, frame + size};
    skip(&in, 4); /* correlation id */
    skip_tags(&in);
    return in;
}

int32_t correlation(const uint8_t *frame, size_t size) {
    struct reader in = {frame, frame + size};
    return (int32_t)read_integer(&in, 4);
}

struct answer produce_answer(const uint8_t *frame, size_t size) {
    struct reader in = body(frame, size);
    struct answer answer = {0};
    expect_one(&in, "topics");
    skip_string(&in);
    expect_one(&in, "partitions");
    skip(&in, 4);
    answer.error = (int)read_integer(&in, 2);
    answer.base_offset = read_integer(&in, 8);
    return answer;
}

struct answer fetch_answer(const uint8_t *frame, size_t size) {
    struct reader in = body(frame, size);
    struct answer answer = {0};
    skip(&in, 4); /* throttle time */
    answer.error = (int)read_integer(&in, 2);
    skip(&in, 4); /* session id */
    if (answer.error) return answer;
    expect_one(&in, "topics");
    skip_string(&in);
    expect_one(&in, "partitions");
    skip(&in, 4);
    answer.error = (int)read_integer(&in, 2);
    answer.high_watermark = read_integer(&in, 8);
    skip(&in, 16); /* last stable offset, log start offset */
    for (uint64_t aborted = read_length(&in); aborted; aborted--) {
        skip(&in, 16);
        skip_tags(&in);
    }
    skip(&in, 4); /* preferred read replica */
    answer.records_size = read_length(&in);
    answer.records = skip(&in, answer.records_size);
    return answer;
}

struct answer metadata_answer(const uint8_t *frame, size_t size) {
    struct reader in = body(frame, size);
    struct answer answer = {0};
    skip(&in, 4); /* throttle time */
    for (uint64_t brokers = read_length(&in); brokers; brokers--) {
        skip(&in, 4);
        skip_string(&in);
        skip(&in, 4);
        skip_string(&in);
        skip_tags(&in);
    }
    skip_string(&in); /* cluster id */
    skip(&in, 4);     /* controller id */
    expect_one(&in, "topics");
    answer.error = (int)read_integer(&in, 2);
    return answer;
}

int64_t next_offset(const struct answer *answer, const uint8_t *expected, size_t expected_size) {
    const uint8_t *at = answer->records, *end = at + answer->records_size;
    int64_t next = -1;
    while (end - at >= BATCH_HEADER) {
        int64_t size = big_endian(at + BATCH_LENGTH_AT, 4) + BATCH_LENGTH_AT + 4;
        if (size < BATCH_HEADER) die("the answer holds a batch of %lld bytes", (long long)size);
        if (size > end - at) break; /* cut off by max bytes */
        /* The broker sets base offset and leader epoch, both in front of the magic byte. */
        if (expected && ((size_t)size != expected_size ||
                         memcmp(at + BATCH_MAGIC_AT, expected + BATCH_MAGIC_AT,
                                expected_size - BATCH_MAGIC_AT) != 0))
            die("the answer holds another batch than was produced");
        next = big_endian(at, 8) + big_endian(at + LAST_OFFSET_DELTA_AT, 4) + 1;
        at += size;
    }
    return next;
}
