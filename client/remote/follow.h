/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What a session of the running profd recorded and records, as a stream of records in order of
 * time. follow_next() waits for the daemon, which sends a watermark about once a second; a program
 * with a screen reads on a thread of its own.
 */

#include "client/frame/command.h"
#include "perfdata/reader/reader.h"
#include "perfdata/record/stream-mark.h"

typedef struct Follow Follow;

typedef struct FollowRequest {
    const char *session;         /* NULL: "default" */
    uint64_t since_us, until_us; /* since 0: now; until 0: without an end */
    bool may_be_absent; /* that nothing was recorded is not reported: STATUS_NOT_FOUND alone */
} FollowRequest;

typedef enum FollowWhat {
    FOLLOW_END,       /* of the window, or the daemon ended the stream: follow_is_whole() */
    FOLLOW_RECORD,    /* record and stamp */
    FOLLOW_WATERMARK, /* record and mark; older records may still wait to be put in order */
    FOLLOW_GAP,       /* record and mark */
} FollowWhat;

typedef struct FollowItem {
    FollowWhat what;
    PdRecord record; /* valid until the next call */
    PdStamp stamp;
    PdStreamMark mark;
} FollowItem;

/* An ExitStatus; reports failures. */
int follow_open(const Context *c, const FollowRequest *request, Follow **ret);
Follow *follow_free(Follow *follow);
DEFINE_CLEANUP(Follow *, follow_free);

/* 0 or a negative errno; -ETIMEDOUT: the daemon sends nothing any more. */
int follow_next(Follow *follow, FollowItem *ret);
/* Makes a follow_next() that waits in another thread come to the end of the stream; NULL: does
 * nothing. */
void follow_interrupt(const Follow *follow);
/* The reader of the stream, for profile_builder_begin(); nobody else may read from it. */
PdReader *follow_reader(Follow *follow);
/* After FOLLOW_END: whether the stream came to the end of its window. */
bool follow_is_whole(const Follow *follow);
/* Everything before this time was sent, CLOCK_REALTIME; 0: nothing is known of it. */
uint64_t follow_sent_ns(const Follow *follow);
/* Connects again and continues where it ended, with a new reader; no sample comes twice. An
 * ExitStatus without a message: STATUS_NOT_RUNNING while nothing listens;
 * STATUS_FAILED if it cannot continue, because the host has been booted or the session is gone. */
int follow_resume(const Context *c, Follow *follow);
