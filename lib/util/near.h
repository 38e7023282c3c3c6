/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Finds the existing names that are most similar to an unknown one. */

#include <stdbool.h>
#include <stddef.h>

#include "util/buffer.h"

enum {
    NEAR_NAME_MAX = 256, /* includes the NUL; longer names are never offered */
    NEAR_NAMES_MAX = 3,
    NEAR_FAR = 1000, /* more typos than allowed */
};

/* The most similar names so far, best first, each once. */
typedef struct NearNames {
    struct {
        char name[NEAR_NAME_MAX];
        unsigned distance;
    } names[NEAR_NAMES_MAX];
    size_t n;
} NearNames;

/* The number of typos between two names: inserted, omitted, replaced or swapped letters, ignoring
 * case. NEAR_FAR: more than a few, or a name has more than 64 bytes. */
unsigned near_distance(const char *a, const char *b);
/* The same with another limit; NEAR_FAR: more typos than that. */
unsigned near_distance_within(const char *a, const char *b, unsigned typos_max);
/* Keeps the name if it is among the most similar ones. NEAR_FAR: it is not kept. */
void near_offer(NearNames *near, const char *name, unsigned distance);
/* Ends a sentence and asks whether one of the names was meant, if there are any. */
void near_put_question(const NearNames *near, Buffer *out);
