/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The sentences of `changed`. */

#include "client/view/view.h"

enum { CHANGE_NOW, CHANGE_BEFORE, CHANGE_YESTERDAY, CHANGE_SIDES };

enum { CHANGE_MIN_PERCENT = 2 /* of all load; a smaller change is none */ };

typedef enum ChangeKind { CHANGE_UNIT, CHANGE_FUNCTION, CHANGE_KINDS } ChangeKind;

typedef struct Change {
    ChangeKind kind;
    unsigned against;    /* the side that it was found against */
    Bytes group, symbol; /* borrowed */
    double figures[CHANGE_SIDES];
    bool is_known[CHANGE_SIDES];
    double q;
} Change;

typedef struct ChangeList {
    const View *sides[CHANGE_SIDES]; /* borrowed; NULL: it could not be loaded */
    uint32_t events[CHANGE_SIDES];   /* what is compared; PROFILE_NONE: the side has none of it */
    Change host;                     /* all load together */
    Change *items;
    size_t n, n_more; /* more were found than are listed */
    const char *unit; /* of the figures */
    bool by_unit;     /* groups are units, else names of threads */
    bool is_spread_known;
} ChangeList;

/* -ENOMEM. */
int change_list_add(ChangeList *list, const Change *change);
/* As text or JSON. */
void change_list_print(Context *c, const ChangeList *list);
/* As sentences for a page, each ended by a NUL; that about the whole host first. */
void change_list_put(const ChangeList *list, Buffer *out);
