/* Shifts the clock of a process by the seconds that a file holds, which may change while it runs.
 *
 * Preloaded into what chaos starts (clocks.py). Only the time of day is shifted, as when somebody sets a clock:
 * monotonic clocks go on. Nothing is locked, so a process may be killed at any moment.
 *
 * A wait may end at a time of day, which its caller took from the shifted clock, while the kernel goes by its own. So
 * the ends of waits are shifted back: else a clock that is behind would end each wait at once (librdkafka would take
 * all cores), and one that is ahead would let it last longer by the whole step. What waits already when the clock is
 * set still ends at its old time. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <threads.h>
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

/* No machine has run for so many seconds: an end of a wait that is later is a time of day, not one of a monotonic
 * clock. */
#define LONGEST_UPTIME 1000000000

/* The end of a wait by the kernel's clock, and that clock. */
static struct timespec end_of(const struct timespec *at, clockid_t *clock) {
    struct timespec end = *at;
    *clock = end.tv_sec > LONGEST_UPTIME ? CLOCK_REALTIME : CLOCK_MONOTONIC;
    if (*clock == CLOCK_REALTIME && seconds)
        end.tv_sec -= *seconds;
    return end;
}

int pthread_cond_timedwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict at) {
    clockid_t clock;
    struct timespec end = end_of(at, &clock);
    return pthread_cond_clockwait(cond, mutex, clock, &end);
}

/* In glibc the conditions and mutexes of C11 are those of POSIX. */
int cnd_timedwait(cnd_t *restrict cond, mtx_t *restrict mutex, const struct timespec *restrict at) {
    int status = pthread_cond_timedwait((pthread_cond_t *)cond, (pthread_mutex_t *)mutex, at);
    return status == 0 ? thrd_success : status == ETIMEDOUT ? thrd_timedout : thrd_error;
}

int sem_timedwait(sem_t *restrict sem, const struct timespec *restrict at) {
    clockid_t clock;
    struct timespec end = end_of(at, &clock);
    return sem_clockwait(sem, clock, &end);
}
