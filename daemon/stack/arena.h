/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Unwound samples that are not written yet, in memory that outlives the recorder. What is committed
 * here may leave its ring. The writer reads the records where they lie, and their space is free
 * again when it has written them. The arena belongs to the main thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/bytes.h"

enum { ARENA_MARKS = 8, ARENA_HEADER_BYTES = 64 };

typedef struct Arena {
    uint8_t *memory; /* NULL: there is none */
    uint64_t size;   /* of the space for entries, behind the header */
    uint64_t begin, end;
    uint64_t touched; /* the highest end since it was empty */
    struct {
        uint64_t sweep, end;
    } marks[ARENA_MARKS]; /* where each sweep ended that is not written yet */
    size_t n_marks;
} Arena;

/* Begins an empty arena in memory of this size, which starts at a page and is borrowed. */
void arena_init(Arena *arena, void *memory, size_t size);
/* Continues the arena that an earlier recorder left. -EBADMSG: what is there is no arena, so an
 * empty one begins. */
int arena_adopt(Arena *arena, void *memory, size_t size);
bool arena_is_empty(const Arena *arena);
/* Whether what is not written yet fills much of it. */
bool arena_holds_much(const Arena *arena);

typedef int (*ArenaReader)(void *userdata, unsigned cpu, Bytes records);
/* Calls fn for each entry, oldest first, until fn fails. The records are whole and valid until they
 * are written. */
int arena_each(const Arena *arena, ArenaReader fn, void *userdata);

/* Copies records of one CPU and commits them: from now on the next recorder would find them.
 * Returns where they lie; empty: there is no space for them. */
Bytes arena_append(Arena *arena, unsigned cpu, Bytes records);
/* The sweep with this number is complete. */
void arena_note_sweep(Arena *arena, uint64_t sweep);
/* All sweeps up to this one are written: frees their space. */
void arena_written(Arena *arena, uint64_t sweep);
