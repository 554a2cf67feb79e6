/* What the parts of the load generator share: the workload's options and the way out. */
#ifndef LOAD_H
#define LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct options {
    const char *workload, *host, *topic;
    long port, partitions, connections, in_flight, acks, count, max_bytes, interval_us, verify;
    long pause_us; /* after each answer of a closed loop */
    double seconds;
    uint8_t *batch; /* the file named by batch=, one whole record batch */
    size_t batch_size;
};

struct outcome {
    uint64_t requests, bytes, elapsed_ns;
};

/* Print a line on stderr and exit with 1: a load with failed requests is not measured. */
_Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));

uint64_t now_ns(void);

/* samples.c: latencies, kept one by one so that percentiles are exact */
void sample(uint64_t ns);
double percentile_us(double share);

/* closed_loop.c: every connection keeps so many requests in flight until time or count is up */
struct outcome closed_loop(const struct options *options);

/* end_to_end.c: from the sending of a record to its arrival at a waiting fetch */
struct outcome end_to_end(const struct options *options);

#endif
