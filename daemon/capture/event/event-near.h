/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "util/bytes.h"
#include "util/near.h"

enum { EVENT_WORD_MAX = 256 }; /* bytes of one name */

/* Names that are similar to one that does not exist. */
typedef struct EventNear {
    NearNames names;
    Bytes wanted;
} EventNear;

void event_near_offer(EventNear *near, const char *name);
/* ", did you mean 'a' or 'b'?", or nothing. */
void event_near_print(const EventNear *near, char *ret, size_t size);
