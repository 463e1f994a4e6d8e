/* Shifts the clock of a process by the seconds that a file holds, which may change while it runs.
 *
 * Preloaded into what chaos starts (clocks.py). Only the time of day is shifted, as when somebody sets a clock:
 * monotonic clocks go on. Nothing is locked, so a process may be killed at any moment. Waits whose end is a time of
 * day do not move, because the kernel's clock has not. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *seconds;
static int (*real)(clockid_t, struct timespec *);

__attribute__((constructor)) static void begin(void) {
    const char *name = getenv("EVENFLOW_CHAOS_CLOCK");
    int file = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
    real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    if (file < 0)
        return;
    void *place = mmap(NULL, sizeof *seconds, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (place != MAP_FAILED)
        seconds = place;
}

int clock_gettime(clockid_t clock, struct timespec *at) {
    int status = real ? real(clock, at) : (int)syscall(SYS_clock_gettime, clock, at);
    if (status == 0 && seconds && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        at->tv_sec += *seconds;
    return status;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone) {
    struct timespec now;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0)
        return -1;
    at->tv_sec = now.tv_sec;
    at->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *at) {
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0)
        return -1;
    if (at)
        *at = now.tv_sec;
    return now.tv_sec;
}
