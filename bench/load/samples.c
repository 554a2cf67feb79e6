#include <stdlib.h>

#include "load.h"

static uint64_t *samples;
static size_t count, room;
static bool sorted;

void sample(uint64_t ns) {
    if (count == room) {
        room = room ? 2 * room : 1 << 20;
        samples = realloc(samples, room * sizeof *samples);
        if (!samples) die("out of memory");
    }
    samples[count++] = ns;
}

static int by_size(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

double percentile_us(double share) {
    if (!count) return 0;
    if (!sorted) qsort(samples, count, sizeof *samples, by_size);
    sorted = true;
    return (double)samples[(size_t)(share * (double)(count - 1))] / 1000;
}
