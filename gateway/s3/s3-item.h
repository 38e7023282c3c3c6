/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What is uploaded next, and when: a window of time, or a file of a snapshot; and how it is got. */

#include "s3/s3-state.h"
#include "s3/s3-task.h"

typedef struct S3Slot {
    uint64_t since_ns, until_ns; /* CLOCK_REALTIME */
    uint64_t due_ns;
} S3Slot;

/* The window that begins where the last object ended: up to the next multiple of the interval. */
S3Slot s3_schedule_next(uint64_t cursor_ns, uint64_t interval_ns, uint64_t spread_ns);
/* Windows that end up to this time are due. */
uint64_t s3_schedule_due(uint64_t now_ns, uint64_t interval_ns, uint64_t spread_ns);
/* Moves the cursor behind what is due, and gives up what is too old or longer ago than
 * BACKLOG_REACH_NS. A cursor ahead of the time was set by a clock that was wrong: it comes back to
 * what is due. Whether the state is worth writing. */
bool s3_schedule_take(S3State *state, const SendConfig *config, uint64_t spread_ns,
                      uint64_t now_ns);
/* Which window of a list is next: that which ends at the cursor, else the oldest that ends behind
 * `failed_ns`, up to which windows failed, else the oldest. */
S3Slot s3_schedule_pick(const RangeList *unsent, uint64_t cursor_ns, uint64_t interval_ns,
                        uint64_t failed_ns);
/* Where a new destination begins: with the window that is running. */
uint64_t s3_schedule_first(uint64_t now_ns, uint64_t interval_ns);
/* How long after the end of each window this host waits: another time for each host and
 * destination, so that a fleet does not come at the same moment. */
uint64_t s3_schedule_spread(const char *host, const char *name, uint64_t interval_ns);

typedef struct S3Item {
    bool is_snapshot;
    S3Slot slot;         /* of a window */
    S3Snapshot snapshot; /* else */
    size_t file;         /* of a snapshot that is a folder */
    char key[S3_KEY_MAX];
    S3Object object;
    uint64_t samples, missing_ns, deleted_ns;
    int error; /* of the last s3_item_fetch(), or of a key that is too long */
} S3Item;

void s3_item_done(S3Item *item);
/* Names the item as the template says. */
int s3_item_name(S3Item *item, const char *template, const char *host, const char *session);
/* Gets its bytes from profd; waits. */
void s3_item_fetch(S3Item *item, S3Profd *profd);

enum { S3_PENDING_MAX = 64 }; /* the others come with the next list */

/* Snapshots that were not uploaded yet, oldest first. */
typedef struct S3Pending {
    S3Snapshot *items;
    size_t n, next;
    size_t n_failed, first_failed; /* before `next`: failed, the next list has them */
} S3Pending;

void s3_pending_done(S3Pending *pending);
/* Asks profd; waits. The state is the caller's, and knows after that which snapshots are gone. Of a
 * folder, files that were uploaded by the last list are not uploaded again. */
int s3_pending_fetch(const S3Pending *last, S3Profd *profd, S3State *state, S3Pending *ret);
/* Goes on behind the next one, which could not be got. */
void s3_pending_skip(S3Pending *pending);
