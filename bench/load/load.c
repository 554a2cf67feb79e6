/* Load on one broker from one thread: load WORKLOAD name=value ...

   Workloads: produce, fetch, metadata (a closed loop on every connection), e2e (one record at a
   time from a producer to a waiting consumer). Every answer is checked; the first error ends the
   run. Prints one JSON line. */
#include "load.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void die(const char *format, ...) {
    va_list args;
    va_start(args, format);
    fputs("load: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(1);
}

uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void read_batch(struct options *options, const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0) die("%s: %s", path, strerror(errno));
    long size = ftell(file);
    options->batch_size = (size_t)size;
    options->batch = malloc(options->batch_size);
    rewind(file);
    if (!options->batch || fread(options->batch, 1, options->batch_size, file) != (size_t)size)
        die("%s: cannot be read", path);
    fclose(file);
}

static void parse(struct options *options, const char *argument) {
    struct {
        const char *name;
        long *into;
    } numbers[] = {
        {"port", &options->port},
        {"partitions", &options->partitions},
        {"connections", &options->connections},
        {"in_flight", &options->in_flight},
        {"acks", &options->acks},
        {"count", &options->count},
        {"max_bytes", &options->max_bytes},
        {"interval_us", &options->interval_us},
        {"pause_us", &options->pause_us},
        {"verify", &options->verify},
    };
    const char *value = strchr(argument, '=');
    if (!value) die("%s is not name=value", argument);
    size_t length = (size_t)(value++ - argument);
    char *rest = "";
    bool known = true;
#define NAMED(text) (length == strlen(text) && !strncmp(argument, text, length))
    if (NAMED("host")) options->host = value;
    else if (NAMED("topic")) options->topic = value;
    else if (NAMED("batch")) read_batch(options, value);
    else if (NAMED("seconds")) options->seconds = strtod(value, &rest);
    else known = false;
    for (size_t i = 0; !known && i < sizeof numbers / sizeof *numbers; i++)
        if (NAMED(numbers[i].name)) {
            *numbers[i].into = strtol(value, &rest, 10);
            known = true;
        }
#undef NAMED
    if (!known) die("unknown option %s", argument);
    if (*rest || !*value) die("%s has no number", argument);
}

static void check(const struct options *options) {
    bool sends = !strcmp(options->workload, "produce") || !strcmp(options->workload, "e2e");
    if (!options->port || !options->topic) die("port= and topic= are needed");
    if (options->seconds <= 0 && options->count <= 0) die("seconds= or count= is needed");
    if (options->acks != 1 && options->acks != -1)
        die("acks is 1 or -1: without an answer nothing shows that a batch was taken");
    if (options->connections < 1 || options->in_flight < 1 || options->partitions < 1)
        die("connections, in_flight and partitions are 1 or more");
    if ((sends || options->verify) && !options->batch_size) die("batch= is needed");
}

int main(int count, char **arguments) {
    struct options options = {.host = "127.0.0.1", .partitions = 1, .connections = 1,
                              .in_flight = 1, .acks = -1, .max_bytes = 1 << 20,
                              .interval_us = 10000};
    if (count < 2) die("usage: load produce|fetch|metadata|e2e name=value ...");
    options.workload = arguments[1];
    for (int i = 2; i < count; i++) parse(&options, arguments[i]);
    check(&options);
    struct outcome outcome;
    if (!strcmp(options.workload, "e2e")) outcome = end_to_end(&options);
    else if (!strcmp(options.workload, "produce") || !strcmp(options.workload, "fetch") ||
             !strcmp(options.workload, "metadata")) outcome = closed_loop(&options);
    else die("unknown workload %s", options.workload);
    printf("{\"requests\": %llu, \"bytes\": %llu, \"seconds\": %.6f, \"p50_us\": %.1f, "
           "\"p99_us\": %.1f}\n",
           (unsigned long long)outcome.requests, (unsigned long long)outcome.bytes,
           (double)outcome.elapsed_ns / 1e9, percentile_us(0.5), percentile_us(0.99));
    return 0;
}
