#include <poll.h>
#include <time.h>

#include "connection.h"

enum { WAIT_MS = 5000, PATIENCE_MS = 30000 };

static void send_request(struct connection *c) {
    c->sent = 0;
    if (!push(c)) die("a small request did not leave at once");
}

/* The offset behind the fetched batch, or -1 if none has arrived yet. An empty answer is followed by
   another fetch from `offset`. */
static int64_t arrived(struct connection *c, int64_t offset) {
    size_t size;
    const uint8_t *frame = pull(c) ? next_frame(c, &size) : NULL;
    if (!frame) return -1;
    struct answer answer = fetch_answer(frame, size);
    if (answer.error) die("fetch answered error code %d", answer.error);
    int64_t next = next_offset(&answer, NULL, 0);
    if (next < 0) {
        set_offset(&c->request, offset);
        send_request(c);
    }
    return next;
}

static int64_t produced(struct connection *c) {
    size_t size;
    const uint8_t *frame = pull(c) ? next_frame(c, &size) : NULL;
    if (!frame) return -1;
    struct answer answer = produce_answer(frame, size);
    if (answer.error) die("produce answered error code %d", answer.error);
    return answer.base_offset;
}

static void await(struct pollfd *sources, int count) {
    if (poll(sources, (nfds_t)count, PATIENCE_MS) == 0)
        die("nothing came in %d s", PATIENCE_MS / 1000);
}

static void sleep_until(uint64_t at_ns) {
    struct timespec at = {(time_t)(at_ns / 1000000000), (long)(at_ns % 1000000000)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

struct outcome end_to_end(const struct options *options) {
    struct connection producer, consumer;
    struct pollfd sources[2] = {{.events = POLLIN}, {.events = POLLIN}};
    struct outcome outcome = {0};
    open_connection(&producer, options);
    open_connection(&consumer, options);
    sources[0].fd = producer.fd;
    sources[1].fd = consumer.fd;
    produce_request(&producer.request, options);
    fetch_request(&consumer.request, options, WAIT_MS);

    /* The first record shows where the log ends. */
    int64_t offset = -1, next = -1;
    send_request(&producer);
    while ((offset = produced(&producer)) < 0) await(sources, 1);

    uint64_t began = now_ns(), tick = began;
    set_offset(&consumer.request, offset);
    send_request(&consumer);
    while ((next = arrived(&consumer, offset)) < 0) await(sources + 1, 1);
    while (!options->count || outcome.requests < (uint64_t)options->count) {
        if (options->seconds > 0 && now_ns() - began > options->seconds * 1e9) break;
        offset = next;
        set_offset(&consumer.request, offset);
        send_request(&consumer); /* is waiting at the broker when the record is sent */
        sleep_until(tick += (uint64_t)options->interval_us * 1000);
        uint64_t sent_at = now_ns();
        send_request(&producer);
        int64_t acked = -1;
        for (next = -1; next < 0 || acked < 0;) {
            await(sources, 2);
            if (sources[1].revents && (next = arrived(&consumer, offset)) >= 0)
                sample(now_ns() - sent_at);
            if (sources[0].revents) acked = produced(&producer);
        }
        outcome.requests++;
        outcome.bytes += options->batch_size;
    }
    outcome.elapsed_ns = now_ns() - began;
    return outcome;
}
