/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the answers of a store say. Answers are hostile: each text is bounded. */

#include <stdbool.h>
#include <stddef.h>

#include "s3/s3-key.h"
#include "util/bytes.h"

enum {
    S3_UPLOAD_ID_MAX = 1025,
    S3_CODE_MAX = 64,
    S3_MESSAGE_MAX = 192,
    S3_UPLOADS_MAX = 8, /* ids that one answer gives us; others come with the next one */
};

typedef struct S3AnswerError {
    char code[S3_CODE_MAX]; /* "NoSuchBucket" */
    char message[S3_MESSAGE_MAX];
} S3AnswerError;

/* False: it is no error document. A text that cannot be read is "". */
bool s3_answer_error(Bytes answer, S3AnswerError *ret);

/* Of CreateMultipartUpload. -EBADMSG: it has none that we could send back. */
int s3_answer_upload_id(Bytes answer, char ret[S3_UPLOAD_ID_MAX]);

/* Of CompleteMultipartUpload: a store says 200 before it knows how it ends. */
bool s3_answer_is_complete(Bytes answer);

typedef struct S3Uploads {
    char ids[S3_UPLOADS_MAX][S3_UPLOAD_ID_MAX];
    size_t n;
} S3Uploads;

/* Of ListMultipartUploads: those of exactly this key. -EBADMSG. */
int s3_answer_uploads(Bytes answer, const char *key, S3Uploads *ret);
