/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "util/near.h"

#include <ctype.h>
#include <string.h>

#include "util/macro.h"
#include "util/text.h"

/*
 * The usual edit distance, in which two swapped neighbours are one typo. Three rows of its table
 * are enough, and names are short. A long name may have up to two typos, a name of up to four
 * letters one.
 */

enum { LENGTH_MAX = 64, TYPOS_MAX = 2, SHORT_LENGTH = 4 };

static bool near_is_same(char a, char b) {
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

static unsigned near_edits(const char *a, const char *b) {
    unsigned rows[3][LENGTH_MAX + 1], *before = rows[0], *above = rows[1], *row = rows[2];
    size_t n = strlen(b);

    for (unsigned j = 0; j <= n; j++)
        row[j] = j;
    for (unsigned i = 1; a[i - 1]; i++) {
        unsigned *spare = before;

        before = above;
        above = row;
        row = spare;
        row[0] = i;
        for (unsigned j = 1; j <= n; j++) {
            unsigned changed = above[j - 1] + !near_is_same(a[i - 1], b[j - 1]);
            unsigned moved = MIN(above[j], row[j - 1]) + 1;

            row[j] = MIN(changed, moved);
            if (i > 1 && j > 1 && near_is_same(a[i - 1], b[j - 2]) &&
                near_is_same(a[i - 2], b[j - 1]))
                row[j] = MIN(row[j], before[j - 2] + 1);
        }
    }
    return row[n];
}

unsigned near_distance_within(const char *a, const char *b, unsigned typos_max) {
    size_t longer = MAX(strlen(a), strlen(b)), shorter = MIN(strlen(a), strlen(b));
    unsigned distance;

    if (longer > LENGTH_MAX || longer - shorter > typos_max)
        return NEAR_FAR;
    distance = near_edits(a, b);
    return distance <= typos_max && distance < longer ? distance : NEAR_FAR;
}

unsigned near_distance(const char *a, const char *b) {
    size_t longer = MAX(strlen(a), strlen(b));

    return near_distance_within(a, b, longer <= SHORT_LENGTH ? 1 : TYPOS_MAX);
}

void near_offer(NearNames *near, const char *name, unsigned distance) {
    size_t at = 0;

    if (distance >= NEAR_FAR || strlen(name) >= NEAR_NAME_MAX)
        return;
    for (size_t i = 0; i < near->n; i++)
        if (strcmp(near->names[i].name, name) == 0)
            return;
    while (at < near->n && near->names[at].distance <= distance)
        at++;
    if (at == NEAR_NAMES_MAX)
        return;
    near->n = MIN(near->n + 1, (size_t)NEAR_NAMES_MAX);
    memmove(&near->names[at + 1], &near->names[at], (near->n - at - 1) * sizeof(near->names[0]));
    memcpy(near->names[at].name, name, strlen(name) + 1);
    near->names[at].distance = distance;
}

void near_put_question(const NearNames *near, Buffer *out) {
    text_putc(out, '.');
    for (size_t i = 0; i < near->n; i++) {
        text_puts(out, i == 0 ? " Did you mean '" : i + 1 < near->n ? ", '" : " or '");
        text_escape_str(out, near->names[i].name);
        text_putc(out, '\'');
    }
    text_puts(out, near->n > 0 ? "?" : "");
}
