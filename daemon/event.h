/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Kinds of event that the log tells of, and their numbers in the journal. */

#include <stddef.h>

typedef struct Event {
    const char *name; /* the value of PROFD_EVENT= */
    const char *id;   /* MESSAGE_ID= */
} Event;

/* All there are; *ret_n of them. */
const Event *event_table(size_t *ret_n);
/* NULL: no event has that name. */
const char *event_id(const char *name);
