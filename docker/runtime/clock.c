/*
 * A wall clock that can be set for one container: LD_PRELOAD=/usr/local/lib/clock.so CLOCK_OFFSET_FILE=/clocks/me.
 *
 * The file holds seconds to add, such as +3600 or -0.5, and is read again every second; no file means no offset. Only
 * the wall clock is moved, as an administrator or NTP would: CLOCK_MONOTONIC and CLOCK_BOOTTIME stay true, so does every
 * wait. (libfaketime 0.9.10 fails clock_nanosleep here, so that Python's time.sleep raises.) A wait that is under way
 * when the offset changes ends when it would have.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL
/* No deadline on the monotonic clock is this large, and none on the wall clock is smaller: 31 years. */
#define WALL_CLOCK 1000000000LL

static int (*true_clock_gettime)(clockid_t, struct timespec *);
static int (*true_clock_nanosleep)(clockid_t, int, const struct timespec *, struct timespec *);
static int (*true_cond_timedwait)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
static int (*true_mutex_timedlock)(pthread_mutex_t *, const struct timespec *);
static int (*true_sem_timedwait)(sem_t *, const struct timespec *);
static const char *offset_file;

__attribute__((constructor)) static void find_the_true_ones(void)
{
    offset_file = getenv("CLOCK_OFFSET_FILE");
    true_clock_nanosleep = dlsym(RTLD_NEXT, "clock_nanosleep");
    true_mutex_timedlock = dlsym(RTLD_NEXT, "pthread_mutex_timedlock");
    true_sem_timedwait = dlsym(RTLD_NEXT, "sem_timedwait");
    true_cond_timedwait = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2"); /* x86: there is an older one */
    if (!true_cond_timedwait)
        true_cond_timedwait = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
    true_clock_gettime = dlsym(RTLD_NEXT, "clock_gettime");
}

static int real_time(clockid_t clock, struct timespec *now)
{
    /* Libraries that are set up earlier than this one already ask for the time. */
    return true_clock_gettime ? true_clock_gettime(clock, now) : (int)syscall(SYS_clock_gettime, clock, now);
}

static long long offset_ns(void)
{
    static long long offset, next_look;
    struct timespec now;
    char text[64];
    int saved = errno;

    real_time(CLOCK_MONOTONIC_COARSE, &now);
    long long seen = __atomic_load_n(&next_look, __ATOMIC_RELAXED);
    /* One thread looks, the others go on with what is known. */
    if (offset_file && now.tv_sec >= seen &&
        __atomic_compare_exchange_n(&next_look, &seen, now.tv_sec + 1, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
        int file = open(offset_file, O_RDONLY | O_CLOEXEC);
        ssize_t length = file < 0 ? -1 : read(file, text, sizeof text - 1);
        if (file >= 0)
            close(file);
        text[length < 0 ? 0 : length] = 0;
        __atomic_store_n(&offset, (long long)(strtod(text, NULL) * SECOND), __ATOMIC_RELAXED);
        errno = saved;
    }
    return __atomic_load_n(&offset, __ATOMIC_RELAXED);
}

static struct timespec moved(struct timespec when, long long by)
{
    long long total = when.tv_sec * SECOND + when.tv_nsec + by;
    if (total < 0)
        total = 0;
    return (struct timespec){.tv_sec = total / SECOND, .tv_nsec = total % SECOND};
}

static struct timespec true_deadline(const struct timespec *when)
{
    return when->tv_sec < WALL_CLOCK ? *when : moved(*when, -offset_ns());
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    int failed = real_time(clock, now);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_TAI))
        *now = moved(*now, offset_ns());
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct timespec precise;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &precise);
    *now = (struct timeval){.tv_sec = precise.tv_sec, .tv_usec = precise.tv_nsec / 1000};
    return 0;
}

time_t time(time_t *now)
{
    struct timespec precise;
    clock_gettime(CLOCK_REALTIME, &precise);
    if (now)
        *now = precise.tv_sec;
    return precise.tv_sec;
}

int timespec_get(struct timespec *now, int base)
{
    return base == TIME_UTC && !clock_gettime(CLOCK_REALTIME, now) ? base : 0;
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *when, struct timespec *left)
{
    if (clock != CLOCK_REALTIME || !(flags & TIMER_ABSTIME))
        return true_clock_nanosleep(clock, flags, when, left);
    struct timespec deadline = true_deadline(when);
    return true_clock_nanosleep(clock, flags, &deadline, left);
}

int pthread_cond_timedwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict when)
{
    struct timespec deadline = true_deadline(when);
    return true_cond_timedwait(condition, mutex, &deadline);
}

int pthread_mutex_timedlock(pthread_mutex_t *restrict mutex, const struct timespec *restrict when)
{
    struct timespec deadline = true_deadline(when);
    return true_mutex_timedlock(mutex, &deadline);
}

int sem_timedwait(sem_t *restrict semaphore, const struct timespec *restrict when)
{
    struct timespec deadline = true_deadline(when);
    return true_sem_timedwait(semaphore, &deadline);
}
