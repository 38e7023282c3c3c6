/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What an answer of a store means for us: what to do next, and a sentence for people. */

#include "transport/transport.h"

typedef enum S3Verdict {
    S3_DONE,
    S3_AGAIN,   /* the same request, a little later */
    S3_WAIT,    /* until somebody changes something: a key, a right, a bucket */
    S3_RESTART, /* the multipart upload is gone, or its parts are: begin the object anew */
    S3_REFUSED, /* this object is never accepted */
} S3Verdict;

enum { S3_SENTENCE_MAX = 256 };

/* `sentence` has no problem ("") if it is S3_DONE. */
S3Verdict s3_problem_judge(const TransportAnswer *answer, char sentence[S3_SENTENCE_MAX]);
