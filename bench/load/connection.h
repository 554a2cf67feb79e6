/* A non-blocking connection that sends one request at a time and cuts what it reads into frames. */
#ifndef CONNECTION_H
#define CONNECTION_H

#include "protocol.h"

struct connection {
    int fd;
    struct request request;
    size_t sent; /* bytes of the request that have left */
    uint8_t *in;
    size_t have, taken, room; /* bytes received, bytes handed out as frames, bytes allocated */
};

void open_connection(struct connection *connection, const struct options *options);

/* Send what is left of the request; true once all of it has left. */
bool push(struct connection *connection);

/* Read once; false if there was nothing to read. */
bool pull(struct connection *connection);

/* The next whole frame, without its size; NULL if more must arrive. Valid until the next pull. */
const uint8_t *next_frame(struct connection *connection, size_t *size);

#endif
