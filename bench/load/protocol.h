/* Kafka requests as bytes, and what their answers say: Produce v9, Fetch v12, Metadata v12. */
#ifndef PROTOCOL_H
#define PROTOCOL_H

#include "load.h"

/* A framed request. The batch between head and tail is shared by all requests, never copied. */
struct request {
    uint8_t head[512], tail[4];
    size_t head_size, batch_size, tail_size;
    const uint8_t *batch;
    size_t partition_at, offset_at; /* where they are in the head */
};

struct answer {
    int error;                    /* of the first partition or topic, else of the response */
    int64_t base_offset;          /* Produce */
    int64_t high_watermark;       /* Fetch */
    const uint8_t *records;       /* Fetch; lies in the frame */
    size_t records_size;
};

void produce_request(struct request *request, const struct options *options);
void fetch_request(struct request *request, const struct options *options, int max_wait_ms);
void metadata_request(struct request *request, const struct options *options);

void set_correlation(struct request *request, int32_t id);
void set_partition(struct request *request, int32_t partition);
void set_offset(struct request *request, int64_t offset);

int32_t correlation(const uint8_t *frame, size_t size);
struct answer produce_answer(const uint8_t *frame, size_t size);
struct answer fetch_answer(const uint8_t *frame, size_t size);
struct answer metadata_answer(const uint8_t *frame, size_t size);

/* The offset behind the last whole batch of the records, or -1 if there is none. Every whole
   batch must equal `expected`, unless that is NULL, except for what a broker fills in. */
int64_t next_offset(const struct answer *answer, const uint8_t *expected, size_t expected_size);

#endif
