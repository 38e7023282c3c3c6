/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/*
 * Preloaded, it shows a program another time of day: CLOCK_SHIFT_S seconds later, or earlier if
 * that is negative. Clocks that count from the boot stay as they are, so a store gets a past that
 * was really recorded, and only its wall clock is moved.
 */

static int (*shift_gettime)(clockid_t clock, struct timespec *ret);
static time_t shift_s;

__attribute__((constructor)) static void shift_begin(void) {
    const char *text = getenv("CLOCK_SHIFT_S");
    void *found = dlsym(RTLD_NEXT, "clock_gettime");

    shift_s = text ? strtol(text, NULL, 10) : 0;
    memcpy(&shift_gettime, &found, sizeof(found));
}

int clock_gettime(clockid_t clock, struct timespec *ret) {
    int r = shift_gettime ? shift_gettime(clock, ret) : -1;

    if (r == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        ret->tv_sec += shift_s;
    return r;
}

time_t time(time_t *ret) {
    struct timespec now = {};

    (void)clock_gettime(CLOCK_REALTIME, &now);
    if (ret)
        *ret = now.tv_sec;
    return now.tv_sec;
}
