/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What a session of the running profd recorded and records, as a stream of records in order of
 * time. follow_next() waits for the daemon, which sends a watermark as often as it is asked to; a
 * program that has more to do reads on a thread of its own.
 *
 *     follow_new() -> follow_connect() -> follow_next() … FOLLOW_END -> follow_connect() …
 *
 * A program that makes calls itself, to word their errors, uses follow_parameters() and
 * follow_begin() instead of the first follow_connect().
 */

#include <jansson.h>

#include "perfdata/reader/reader.h"
#include "perfdata/record/stream-mark.h"
#include "protocol/connection.h"

enum { FOLLOW_ERROR_MAX = 128, FOLLOW_SILENCE_S = 60 };

typedef struct Follow Follow;

typedef struct FollowOptions {
    const char *session;         /* NULL: "default" */
    uint64_t since_us, until_us; /* CLOCK_REALTIME; since 0: now; until 0: without an end */
    uint64_t every_us;           /* how often it wants what is new; 0: once a second */
} FollowOptions;

typedef enum FollowWhat {
    FOLLOW_END,       /* of the window, or the daemon ended the stream: follow_is_whole() */
    FOLLOW_RECORD,    /* record and stamp */
    FOLLOW_WATERMARK, /* record and mark; what is older and was not returned yet comes next */
    FOLLOW_GAP,       /* record and mark */
} FollowWhat;

typedef struct FollowItem {
    FollowWhat what;
    PdRecord record; /* valid until the next call */
    PdStamp stamp;
    PdStreamMark mark;
} FollowItem;

/* Not connected yet. */
int follow_new(const FollowOptions *options, Follow **ret);
Follow *follow_free(Follow *follow);
DEFINE_CLEANUP(Follow *, follow_free);

/*
 * Calls Follow() over the connection, which can only be freed after that. The first call begins at
 * `since`; a later one continues at the last watermark with a new reader, and no sample comes
 * twice. Each step waits at most timeout_ns. -EREMOTEIO: profd refuses, and ret_error has the name
 * of the error, without its interface if that is ours; -ESTALE: there is nothing to continue, since
 * no watermark came or the host has been booted; another negative errno: the connection failed.
 */
int follow_connect(Follow *follow, Connection *connection, uint64_t timeout_ns,
                   char ret_error[FOLLOW_ERROR_MAX]);
/* After a follow_connect() that profd refused by WindowUnavailable: why nothing of the window is
 * there. PD_GAP_UNKNOWN: profd did not say. */
PdGapReason follow_lack(const Follow *follow);
/* The parameters of the call; NULL: no memory. */
json_t *follow_parameters(const Follow *follow);
/* Takes over the descriptor of the upgraded connection, which blocks for FOLLOW_SILENCE_S at most,
 * and waits for the first bytes. `boot_id` is that of the reply. -ETIMEDOUT: nothing comes. */
int follow_begin(Follow *follow, int fd, const char *boot_id);

/* 0 or a negative errno; -ETIMEDOUT: the daemon sends nothing any more. */
int follow_next(Follow *follow, FollowItem *ret);
/* Makes a follow_next() that waits in another thread come to the end of the stream. NULL, or one
 * that never connected: does nothing. */
void follow_interrupt(const Follow *follow);
/* The reader of the stream, for profile_builder_begin(); nobody else may read from it. */
PdReader *follow_reader(Follow *follow);
/* After FOLLOW_END: whether the stream came to the end of its window. */
bool follow_is_whole(const Follow *follow);
/* Everything before this time was sent, CLOCK_REALTIME; 0: nothing is known of it. */
uint64_t follow_sent_ns(const Follow *follow);
