#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>

#include "connection.h"

enum { MOST_IN_FLIGHT = 1024, PATIENCE_MS = 30000 };

struct client {
    struct connection link;
    uint64_t sent_at[MOST_IN_FLIGHT]; /* by correlation id; answers come in order */
    int32_t started, finished;        /* requests; their numbers are the correlation ids */
    bool blocked;                     /* the socket takes no more for now */
    int64_t offset;                   /* where the next fetch begins */
};

struct loop {
    const struct options *options;
    enum { PRODUCE, FETCH, METADATA } kind;
    int poll;
    uint64_t deadline_ns, started;
    struct outcome outcome;
};

static bool wants_more(const struct loop *loop) {
    if (loop->options->count && loop->started >= (uint64_t)loop->options->count) return false;
    return !loop->deadline_ns || now_ns() < loop->deadline_ns;
}

static void watch(struct loop *loop, struct client *client, int operation) {
    struct epoll_event event = {.events = EPOLLIN | (client->blocked ? EPOLLOUT : 0),
                                .data.ptr = client};
    if (epoll_ctl(loop->poll, operation, client->link.fd, &event) != 0)
        die("epoll: %s", strerror(errno));
}

static void finish_sending(struct loop *loop, struct client *client) {
    bool blocked = !push(&client->link);
    if (blocked != client->blocked) {
        client->blocked = blocked;
        watch(loop, client, EPOLL_CTL_MOD);
    }
}

static void pause_us(long us) {
    struct timespec left = {us / 1000000, us % 1000000 * 1000};
    nanosleep(&left, NULL);
}

static void start_requests(struct loop *loop, struct client *client) {
    const struct options *options = loop->options;
    if (options->pause_us && client->finished) pause_us(options->pause_us);
    while (!client->blocked && client->started - client->finished < options->in_flight &&
           wants_more(loop)) {
        struct request *request = &client->link.request;
        set_correlation(request, client->started);
        if (loop->kind == PRODUCE)
            set_partition(request, (int32_t)(loop->started % (uint64_t)options->partitions));
        if (loop->kind == FETCH) set_offset(request, client->offset);
        client->link.sent = 0;
        client->sent_at[client->started++ % MOST_IN_FLIGHT] = now_ns();
        loop->started++;
        finish_sending(loop, client);
    }
}

static size_t fetched(struct loop *loop, struct client *client, const struct answer *answer) {
    const struct options *options = loop->options;
    int64_t next = next_offset(answer, options->verify ? options->batch : NULL, options->batch_size);
    if (next < 0) die("no whole batch at offset %lld", (long long)client->offset);
    client->offset = next < answer->high_watermark ? next : 0;
    return answer->records_size;
}

static void take_answer(struct loop *loop, struct client *client, const uint8_t *frame,
                        size_t size) {
    if (client->finished == client->started || correlation(frame, size) != client->finished)
        die("answer %d came out of order", correlation(frame, size));
    sample(now_ns() - client->sent_at[client->finished++ % MOST_IN_FLIGHT]);
    struct answer answer = loop->kind == PRODUCE ? produce_answer(frame, size)
                           : loop->kind == FETCH ? fetch_answer(frame, size)
                                                 : metadata_answer(frame, size);
    if (answer.error) die("%s answered error code %d", loop->options->workload, answer.error);
    loop->outcome.requests++;
    loop->outcome.bytes += loop->kind == PRODUCE ? loop->options->batch_size
                           : loop->kind == FETCH ? fetched(loop, client, &answer)
                                                 : size;
}

static struct client *open_clients(struct loop *loop) {
    const struct options *options = loop->options;
    struct client *clients = calloc((size_t)options->connections, sizeof *clients);
    if (!clients) die("out of memory");
    for (long i = 0; i < options->connections; i++) {
        struct connection *link = &clients[i].link;
        open_connection(link, options);
        if (loop->kind == PRODUCE) produce_request(&link->request, options);
        if (loop->kind == FETCH) {
            fetch_request(&link->request, options, 500);
            set_partition(&link->request, (int32_t)(i % options->partitions));
        }
        if (loop->kind == METADATA) metadata_request(&link->request, options);
        watch(loop, &clients[i], EPOLL_CTL_ADD);
    }
    return clients;
}

struct outcome closed_loop(const struct options *options) {
    struct loop loop = {.options = options, .poll = epoll_create1(0)};
    loop.kind = !strcmp(options->workload, "produce") ? PRODUCE
                : !strcmp(options->workload, "fetch") ? FETCH
                                                      : METADATA;
    if (options->in_flight > (loop.kind == FETCH ? 1 : MOST_IN_FLIGHT))
        die("in_flight is too large: a fetch starts where the one before it ended");
    if (options->pause_us && options->connections * options->in_flight > 1)
        die("pause_us= is for one connection with one request in flight");
    struct client *clients = open_clients(&loop);
    uint64_t began = now_ns();
    if (options->seconds > 0) loop.deadline_ns = began + (uint64_t)(options->seconds * 1e9);
    for (long i = 0; i < options->connections; i++) start_requests(&loop, &clients[i]);
    while (loop.outcome.requests < loop.started) {
        struct epoll_event events[64];
        int ready = epoll_wait(loop.poll, events, 64, PATIENCE_MS);
        if (ready == 0) die("no answer in %d s", PATIENCE_MS / 1000);
        for (int i = 0; i < ready; i++) {
            struct client *client = events[i].data.ptr;
            const uint8_t *frame;
            size_t size;
            if (events[i].events & EPOLLOUT) finish_sending(&loop, client);
            if (events[i].events & ~(uint32_t)EPOLLOUT && pull(&client->link))
                while ((frame = next_frame(&client->link, &size)))
                    take_answer(&loop, client, frame, size);
            start_requests(&loop, client);
        }
    }
    loop.outcome.elapsed_ns = now_ns() - began;
    return loop.outcome;
}
