/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Aborts what was left of a multipart upload, so that nobody pays for its parts. */

#include "s3/s3-upload.h"

typedef struct S3Cleanup S3Cleanup;

typedef struct S3CleanupOptions {
    S3Target *target;
    const char *key;
    const char *upload_id; /* "": not known, so all uploads of the key are looked for */
    void (*done)(void *userdata, const S3UploadResult *result);
    void *userdata;
} S3CleanupOptions;

/* Texts are borrowed until it is done. `done` is called on the thread of the loop, never from
 * within; the cleanup is freed before. */
int s3_cleanup_start(const S3CleanupOptions *options, S3Cleanup **ret);
/* Whether the upload is not looked for again; parts of it may be left, unless the result is
 * S3_DONE. `failed` counts those in a row that the store answered. */
bool s3_cleanup_is_over(const S3UploadResult *result, unsigned *failed);
/* `done` is not called any more. Accepts NULL. */
S3Cleanup *s3_cleanup_cancel(S3Cleanup *cleanup);
