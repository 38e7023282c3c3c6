/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What a session asks for and this host does not give, one sentence each. */

#include <stddef.h>

#include "util/macro.h"

typedef enum PlanNoteKind {
    PLAN_LEFT_OUT, /* an event or a group, which is not recorded */
    PLAN_FALLBACK, /* something else is recorded instead */
} PlanNoteKind;

typedef struct PlanNote {
    PlanNoteKind kind;
    int error; /* of PLAN_LEFT_OUT, negative; -ENOPKG: the module of the event is not loaded */
    char *text;
} PlanNote;

typedef struct PlanNotes {
    PlanNote *items;
    size_t n;
} PlanNotes;

int plan_note(PlanNotes *notes, PlanNoteKind kind, int error, const char *format, ...)
    _printf_(4, 5);
void plan_notes_done(PlanNotes *notes);
/* The first event that is left out, or NULL. */
const PlanNote *plan_notes_left_out(const PlanNotes *notes);
size_t plan_notes_n_left_out(const PlanNotes *notes);
