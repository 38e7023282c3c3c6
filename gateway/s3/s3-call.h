/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* One signed request to a store, repeated a few times where that may help. */

#include "s3/s3-problem.h"
#include "util/bytes.h"

enum { S3_HASH_MAX = 65 }; /* SHA-256 as hexadecimal digits */

/* A bucket and who is asked for it; one for each destination. */
typedef struct S3Target {
    const SendConfig *config; /* its url names the bucket; borrowed */
    Transport *transport;
    Loop *loop;
    char sigv4[GATEWAY_NAME_MAX + 16];
    uint64_t requests, sent_bytes; /* that the store accepted, and their bodies */
    uint64_t retries;
    /* Each answer other than success and S3_REFUSED, also of an attempt that is repeated; `status`
     * as in S3Result. */
    void (*on_problem)(void *userdata, const char *sentence, long status);
    void *userdata;
} S3Target;

/* What signs for the region of the configuration. on_problem and userdata are the caller's to set.
 */
void s3_target_init(S3Target *target, const SendConfig *config, Transport *transport, Loop *loop);

/* All of it is borrowed until the call is done. */
typedef struct S3Request {
    const char *method;
    const char *key;   /* NULL: of the bucket */
    const char *query; /* encoded, its parameters sorted; NULL: none */
    Bytes body;
    const char *hash; /* of the body; NULL: it is computed */
} S3Request;

typedef struct S3Result {
    S3Verdict verdict;
    long status; /* of HTTP; 0: no answer; SEND_STATUS_LOCAL: the store was not asked */
    char sentence[S3_SENTENCE_MAX];
    uint64_t retry_after_ns;       /* 0: the store did not say */
    const TransportAnswer *answer; /* the last one */
} S3Result;
typedef void (*S3CallDone)(void *userdata, const S3Result *result);

typedef struct S3Call S3Call;

void s3_hash(Bytes bytes, char ret[S3_HASH_MAX]);
/* Appends a value of a query: all but letters, digits, '-', '.', '_' and '~' as %XX. */
void s3_query_put(Buffer *query, const char *value);

/* `done` is called on the thread of the loop, never from within; the call is freed before. */
int s3_call_start(S3Target *target, const S3Request *request, S3CallDone done, void *userdata,
                  S3Call **ret);
/* `done` is not called any more. Accepts NULL. */
S3Call *s3_call_cancel(S3Call *call);
