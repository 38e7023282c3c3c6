/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What a destination has to remember over restarts: one small file. It is written before a request
 * that leaves something with the store, and after each object.
 */

#include "s3/s3-answer.h"
#include "s3/s3-profd.h"
#include "send/range-list.h"

/* A snapshot that needs no upload any more. */
typedef struct S3DoneSnapshot {
    char name[S3_NAME_MAX];
    uint64_t created_us;
    bool is_listed; /* profd still has it; not in the file */
} S3DoneSnapshot;

typedef struct S3Counters {
    uint64_t objects, requests, bytes, samples, retries, refused, refused_samples;
    uint64_t expired_ns, missing_ns, deleted_ns, repeated;
    uint64_t last_success_ns;
} S3Counters;

typedef struct S3State {
    uint64_t until_ns;                /* recordings before it need no upload; 0: it is new */
    RangeList unsent;                 /* but these do */
    uint64_t seen_ns;                 /* the latest time of this run; not in the file */
    char key[S3_KEY_MAX];             /* the object under way; "": none */
    bool is_multipart;                /* something of it may be left with the store */
    char upload_id[S3_UPLOAD_ID_MAX]; /* "": not known */
    S3DoneSnapshot *done;
    size_t n_done;
    S3Counters counters;
} S3State;

#define S3_STATE_SUFFIX ".s3"

/* A zeroed state is valid and new. -ENOENT: there is no file; -EBADMSG: it is damaged. */
int s3_state_load(const char *path, S3State *ret);
int s3_state_print(const S3State *state, Buffer *out);
void s3_state_done(S3State *state);

bool s3_state_has_snapshot(S3State *state, const char *name, uint64_t created_us);
/* -ENOSPC: more than profd can have. */
int s3_state_add_snapshot(S3State *state, const char *name, uint64_t created_us);
/* Between these, s3_state_has_snapshot() was called for all that profd has: forgets the others. */
void s3_state_begin_list(S3State *state);
void s3_state_end_list(S3State *state);
