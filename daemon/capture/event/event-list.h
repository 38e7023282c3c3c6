/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Parses the text of Event=, in perf's syntax: `cycles`, `cpu-clock:u`, `r1a8`, `mem:0x1000/8:rw`,
 * `cpu/event=0x3c,umask=1/pp`, `sched:*`, `{cycles,instructions}:S`, several separated by commas.
 */

#include "capture/event/event-spec.h"
#include "util/macro.h"

/* -EINVAL: `error` holds one sentence with the event, its position and what is expected. Other
 * errors (-EACCES, -ENOMEM) come with a sentence too. Members of a group follow their leader. */
int event_list_parse(const char *text, const EventHost *host, EventList **ret, char *error,
                     size_t error_size);
/* The same, but an event or group with an error is skipped and reported, and parsing continues. The
 * list may be empty. */
int event_list_parse_each(const char *text, const EventHost *host, EventListBad on_bad,
                          void *userdata, EventList **ret);
/* Removes an event that is in no group, or the whole group that it belongs to. */
void event_list_remove(EventList *list, size_t index);
EventList *event_list_free(EventList *list);
DEFINE_CLEANUP(EventList *, event_list_free);
