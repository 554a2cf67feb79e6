#include "connection.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

enum { ROOM = 1 << 16, LARGEST = 1 << 30 };

void open_connection(struct connection *c, const struct options *options) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)options->port)};
    int on = 1;
    if (inet_pton(AF_INET, options->host, &to.sin_addr) != 1)
        die("%s is no IPv4 address", options->host);
    memset(c, 0, sizeof *c);
    c->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&to, sizeof to) != 0)
        die("connect to %s:%ld: %s", options->host, options->port, strerror(errno));
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    fcntl(c->fd, F_SETFL, O_NONBLOCK);
    c->in = malloc(c->room = ROOM);
    if (!c->in) die("out of memory");
}

static void add_unsent(struct msghdr *message, size_t *skip, const void *data, size_t size) {
    if (*skip >= size) {
        *skip -= size;
        return;
    }
    struct iovec *part = &message->msg_iov[message->msg_iovlen++];
    part->iov_base = (uint8_t *)data + *skip;
    part->iov_len = size - *skip;
    *skip = 0;
}

bool push(struct connection *c) {
    const struct request *r = &c->request;
    size_t total = r->head_size + r->batch_size + r->tail_size;
    while (c->sent < total) {
        struct iovec parts[3];
        struct msghdr message = {.msg_iov = parts};
        size_t skip = c->sent;
        add_unsent(&message, &skip, r->head, r->head_size);
        add_unsent(&message, &skip, r->batch, r->batch_size);
        add_unsent(&message, &skip, r->tail, r->tail_size);
        ssize_t sent = sendmsg(c->fd, &message, MSG_NOSIGNAL);
        if (sent < 0 && errno == EAGAIN) return false;
        if (sent < 0) die("send: %s", strerror(errno));
        c->sent += (size_t)sent;
    }
    return true;
}

static size_t frame_size(const struct connection *c) {
    uint32_t size;
    memcpy(&size, c->in + c->taken, sizeof size);
    size = ntohl(size);
    if (size > LARGEST) die("an answer of %u bytes", size);
    return size;
}

bool pull(struct connection *c) {
    if (c->taken) {
        memmove(c->in, c->in + c->taken, c->have - c->taken);
        c->have -= c->taken;
        c->taken = 0;
    }
    if (c->have >= 4 && frame_size(c) + 4 > c->room) {
        c->room = frame_size(c) + 4;
        c->in = realloc(c->in, c->room);
        if (!c->in) die("out of memory");
    }
    ssize_t got = recv(c->fd, c->in + c->have, c->room - c->have, 0);
    if (got < 0 && errno == EAGAIN) return false;
    if (got < 0) die("receive: %s", strerror(errno));
    if (got == 0) die("the broker closed the connection");
    c->have += (size_t)got;
    return true;
}

const uint8_t *next_frame(struct connection *c, size_t *size) {
    if (c->have - c->taken < 4) return NULL;
    *size = frame_size(c);
    if (c->have - c->taken < *size + 4) return NULL;
    const uint8_t *frame = c->in + c->taken + 4;
    c->taken += *size + 4;
    return frame;
}
