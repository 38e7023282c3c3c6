/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Which of the names that exist was probably meant by one that does not. */

#include <stdbool.h>
#include <stddef.h>

enum {
    NEAR_NAME_MAX = 256, /* with its NUL; longer names are never offered */
    NEAR_NAMES_MAX = 3,
    NEAR_FAR = 1000, /* no typo leads from one name to the other */
};

/* The nearest names so far, nearest first, each once. */
typedef struct NearNames {
    struct {
        char name[NEAR_NAME_MAX];
        unsigned distance;
    } names[NEAR_NAMES_MAX];
    size_t n;
} NearNames;

/* How many typos there are: letters put in, left out, exchanged or swapped, upper and lower case
 * aside. NEAR_FAR: more than a few, or a name has more than 64 bytes. */
unsigned near_distance(const char *a, const char *b);
/* The same with another limit; NEAR_FAR: more typos than that. */
unsigned near_distance_within(const char *a, const char *b, unsigned typos_max);
/* Keeps the name if it is among the nearest. NEAR_FAR: it is not kept. */
void near_offer(NearNames *near, const char *name, unsigned distance);
