/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Uploads one object: with one request, or in parts as a multipart upload; or writes it to the
 * folder that a destination is. */

#include "s3/s3-answer.h"
#include "s3/s3-object.h"

typedef struct S3Upload S3Upload;

typedef struct S3UploadResult {
    S3Verdict verdict;
    char sentence[S3_SENTENCE_MAX]; /* unless it is S3_DONE */
    uint64_t retry_after_ns;
    long status; /* as in S3Result */
} S3UploadResult;

typedef struct S3UploadOptions {
    S3Target *target;
    const S3Object *object; /* borrowed until it is done */
    const char *key;        /* likewise */
    /* The store has begun a multipart upload. If that is not S3_DONE at its end, it may have been
     * left with the store. */
    void (*on_begin)(void *userdata, const char *upload_id);
    void (*done)(void *userdata, const S3UploadResult *result);
    void *userdata;
} S3UploadOptions;

/* `done` is called on the thread of the loop, never from within; the upload is freed before. */
int s3_upload_start(const S3UploadOptions *options, S3Upload **ret);
/* Gives it up; `done` is not called any more. Accepts NULL. False: its task hangs, and the object
 * must stay allocated. */
bool s3_upload_cancel(S3Upload *upload);

void s3_upload_result_of(const S3Result *result, S3UploadResult *ret);
