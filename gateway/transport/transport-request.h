/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* One request as libcurl sees it; for transport-multi.c alone. */

#include <curl/curl.h>
#include <sys/queue.h>

#include "transport/transport-types.h"
#include "util/buffer.h"

struct TransportRequest {
    LIST_ENTRY(TransportRequest) list;
    Transport *transport;
    CURL *easy;
    struct curl_slist *headers;
    Buffer compressed, body; /* of the request; of the answer */
    TransportDone done;
    void *userdata;
    size_t size;           /* of the body */
    uint64_t sent;         /* of it, over all connections */
    size_t received;       /* bytes of headers and body */
    size_t kept;           /* of the body, in the answer */
    bool is_cut, is_ended; /* the answer was too long; its headers are complete */
    char error_text[CURL_ERROR_SIZE];
    TransportAnswer answer;
};

/* A request that was not started yet. */
int transport_request_new(const TransportOptions *options, TransportRequest **ret);
TransportRequest *transport_request_free(TransportRequest *request);
DEFINE_CLEANUP(TransportRequest *, transport_request_free);
/* Fills in the answer of a request that ended with this result. */
void transport_request_finish(TransportRequest *request, CURLcode result);
