/* Loaded into a broker before the C library: its machine misbehaves as a file in memory says.
 * The layout is that of faults/interposed.py. Without the file everything is as ever. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

struct machine {
    int32_t sync_errno;     /* fsync and fdatasync fail with it */
    int32_t write_delay_us; /* before each write to a file */
    int64_t clock_offset_s; /* of the wall clock */
    int32_t write_errno;    /* a write to a file stops half-way, and the rest fails with it */
    int32_t unused;
};

static const volatile struct machine *machine;

__attribute__((constructor)) static void attach(void) {
    const char *path = getenv("PENSTOCK_MACHINE");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0) return;
    void *mapped = mmap(NULL, sizeof(struct machine), PROT_READ, MAP_SHARED, fd, 0);
    if (mapped != MAP_FAILED) machine = mapped;
    close(fd);
}

#define NEXT(name) \
    static __typeof__(&name) next; \
    if (!next) next = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

static int sync_fails(void) {
    if (!machine || !machine->sync_errno) return 0;
    errno = machine->sync_errno;
    return 1;
}

static int is_file(int fd) {
    struct stat found;
    return fd > 2 && fstat(fd, &found) == 0 && S_ISREG(found.st_mode);
}

/* How much of a write to this file is carried out; 0 with an errno if it fails. */
static size_t written(int fd, size_t size) {
    if (!machine || !(machine->write_delay_us || machine->write_errno) || !is_file(fd)) return size;
    if (machine->write_delay_us) usleep(machine->write_delay_us);
    if (!machine->write_errno || !size) return size;
    errno = machine->write_errno;
    return size / 2;
}

int fsync(int fd) {
    NEXT(fsync);
    return sync_fails() ? -1 : next(fd);
}

int fdatasync(int fd) {
    NEXT(fdatasync);
    return sync_fails() ? -1 : next(fd);
}

ssize_t write(int fd, const void *data, size_t size) {
    NEXT(write);
    size_t possible = written(fd, size);
    return size && !possible ? -1 : next(fd, data, possible);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at) {
    NEXT(pwrite);
    size_t possible = written(fd, size);
    return size && !possible ? -1 : next(fd, data, possible, at);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) {
    NEXT(pwrite64);
    size_t possible = written(fd, size);
    return size && !possible ? -1 : next(fd, data, possible, at);
}

int clock_gettime(clockid_t which, struct timespec *at) {
    NEXT(clock_gettime);
    int told = next(which, at);
    if (told == 0 && machine && which == CLOCK_REALTIME) at->tv_sec += machine->clock_offset_s;
    return told;
}
