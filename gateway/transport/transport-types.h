/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What a request is made of, and its answer; see transport.h. */

#include "config/gateway-config.h"

typedef struct Transport Transport;
typedef struct TransportRequest TransportRequest;

typedef struct TransportAnswer {
    int error;               /* 0: there is an answer, else a negative errno */
    char problem[256];       /* of curl, a sentence part, escaped; "": none */
    long status;             /* of HTTP */
    uint64_t retry_after_ns; /* 0: the engine did not say */
    char body[512];          /* the beginning of the answer, any bytes but a NUL at its end */
    char etag[128];
    const uint8_t *data; /* the whole body, up to 64K; borrowed while `done` runs */
    size_t size;
    uint64_t sent_bytes; /* of the body, also of attempts of libcurl that it repeated */
    bool is_resent;      /* libcurl sent it again, since a connection that was kept open ended */
} TransportAnswer;
typedef void (*TransportDone)(void *userdata, const TransportAnswer *answer);

typedef struct TransportOptions {
    const SendConfig *config; /* TLS, authentication, proxy, timeout; borrowed until it is done */
    const char *method;       /* "POST", "PUT" */
    const char *url;
    const char *content_type;
    const char *const *headers; /* more of them, ends with NULL; may be NULL */
    const void *body;           /* borrowed until it is done */
    size_t size;
    bool compress;      /* gzip the body */
    const char *sigv4;  /* "aws:amz:REGION:s3": sign for S3, with ACCESS-KEY:SECRET; NULL: no */
    TransportDone done; /* on the loop's thread, never from within transport_send() */
    void *userdata;
} TransportOptions;
