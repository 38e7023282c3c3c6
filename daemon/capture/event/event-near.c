/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture/event/event-near.h"

#include <stdio.h>
#include <string.h>

#include "util/macro.h"

/* Finds the events, terms and PMUs that a user probably meant by a name that does not exist. */

void event_near_offer(EventNear *near, const char *name) {
    size_t n = near->wanted.size;
    char wanted[EVENT_WORD_MAX];

    if (n == 0 || n >= sizeof(wanted) || bytes_equal_str(near->wanted, name))
        return;
    memcpy(wanted, near->wanted.data, n);
    wanted[n] = '\0';
    /* The names are long, so one letter in three may be wrong. */
    near_offer(&near->names, name, near_distance_within(wanted, name, MAX(1U, (unsigned)n / 3)));
}

void event_near_print(const EventNear *near, char *ret, size_t size) {
    size_t n = 0;

    ret[0] = '\0';
    for (size_t i = 0; i < near->names.n && n < size; i++) {
        const char *glue = i == 0 ? ", did you mean" : i + 1 < near->names.n ? "," : " or";

        n += (size_t)snprintf(ret + n, size - n, "%s '%s'", glue, near->names.names[i].name);
    }
    if (near->names.n > 0 && n < size)
        snprintf(ret + n, size - n, "?");
}
