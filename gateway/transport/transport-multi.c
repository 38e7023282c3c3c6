/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "transport/transport.h"

#include <errno.h>

#include "transport/transport-request.h"
#include "util/clock.h"

/*
 * Joins libcurl's multi interface and the loop: libcurl says which sockets it waits for and when it
 * wants to be called, and the loop calls. Requests are in a list until they are done; then their
 * callbacks run one after the other, and may start and cancel requests. Connections stay open
 * between requests, a few for all engines together.
 */

enum { TRANSPORT_IDLE_MAX = 32 };

typedef struct TransportSocket {
    LIST_ENTRY(TransportSocket) list;
    Transport *transport;
    curl_socket_t fd;
    LoopSource *readable, *writable;
} TransportSocket;

struct Transport {
    Loop *loop;
    CURLM *multi;
    LoopSource *timer;
    bool is_global;
    LIST_HEAD(, TransportRequest) requests;
    LIST_HEAD(, TransportSocket) sockets;
};

static void transport_socket_free(TransportSocket *socket) {
    LIST_REMOVE(socket, list);
    (void)loop_source_free(socket->readable);
    (void)loop_source_free(socket->writable);
    free(socket);
}

/* Requests that ended, one by one: each call may add or remove others. */
static void transport_finish(Transport *transport) {
    CURLMsg *message;
    int left;

    while ((message = curl_multi_info_read(transport->multi, &left))) {
        TransportRequest *request = NULL;
        CURLcode result = message->data.result;

        if (message->msg != CURLMSG_DONE)
            continue;
        (void)curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&request);
        transport_request_finish(request, result);
        LIST_REMOVE(request, list);
        (void)curl_multi_remove_handle(transport->multi, request->easy);
        request->done(request->userdata, &request->answer);
        (void)transport_request_free(request);
    }
}

static int transport_act(Transport *transport, curl_socket_t fd, int what) {
    int running;

    if (curl_multi_socket_action(transport->multi, fd, what, &running) == CURLM_OUT_OF_MEMORY)
        return -ENOMEM;
    transport_finish(transport);
    return 0;
}

/* The call may free the socket. */
static int transport_on_readable(void *userdata) {
    TransportSocket *socket = userdata;

    return transport_act(socket->transport, socket->fd, CURL_CSELECT_IN);
}

static int transport_on_writable(void *userdata) {
    TransportSocket *socket = userdata;

    return transport_act(socket->transport, socket->fd, CURL_CSELECT_OUT);
}

static int transport_on_time(void *userdata) {
    return transport_act(userdata, CURL_SOCKET_TIMEOUT, 0);
}

/* libcurl must not be called from here, so also "now" goes through the loop. A timer that is not
 * wanted any more does no harm. */
static int transport_on_timeout(CURLM *multi _unused_, long timeout_ms, void *userdata) {
    Transport *transport = userdata;

    if (timeout_ms < 0)
        return 0;
    return loop_trigger_after(transport->timer, (uint64_t)timeout_ms * NS_PER_MS) < 0 ? -1 : 0;
}

static int transport_socket_new(Transport *transport, curl_socket_t fd, TransportSocket **ret) {
    TransportSocket *socket = calloc(1, sizeof(*socket));

    if (!socket)
        return -ENOMEM;
    *socket = (TransportSocket){.transport = transport, .fd = fd};
    LIST_INSERT_HEAD(&transport->sockets, socket, list);
    (void)curl_multi_assign(transport->multi, fd, socket);
    *ret = socket;
    return 0;
}

static int transport_socket_watch(TransportSocket *socket, int what) {
    Loop *loop = socket->transport->loop;
    bool reads = what == CURL_POLL_IN || what == CURL_POLL_INOUT;
    bool writes = what == CURL_POLL_OUT || what == CURL_POLL_INOUT;
    int r = 0;

    if (!reads)
        socket->readable = loop_source_free(socket->readable);
    else if (!socket->readable)
        r = loop_add_readable(loop, socket->fd, transport_on_readable, socket, &socket->readable);
    if (!writes)
        socket->writable = loop_source_free(socket->writable);
    else if (!socket->writable && r == 0)
        r = loop_add_writable(loop, socket->fd, transport_on_writable, socket, &socket->writable);
    return r;
}

static int transport_on_socket(CURL *easy _unused_, curl_socket_t fd, int what, void *userdata,
                               void *assigned) {
    Transport *transport = userdata;
    TransportSocket *socket = assigned;

    if (what == CURL_POLL_REMOVE) {
        if (socket)
            transport_socket_free(socket);
        (void)curl_multi_assign(transport->multi, fd, NULL);
        return 0;
    }
    if (!socket && transport_socket_new(transport, fd, &socket) < 0)
        return -1;
    return transport_socket_watch(socket, what) < 0 ? -1 : 0;
}

static int transport_configure(Transport *transport) {
    CURLM *multi = transport->multi;

    if (curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, transport_on_socket) != CURLM_OK ||
        curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, transport) != CURLM_OK ||
        curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, transport_on_timeout) != CURLM_OK ||
        curl_multi_setopt(multi, CURLMOPT_TIMERDATA, transport) != CURLM_OK ||
        curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, (long)TRANSPORT_IDLE_MAX) != CURLM_OK)
        return -EINVAL;
    return 0;
}

int transport_new(Loop *loop, Transport **ret) {
    _cleanup_(transport_freep) Transport *transport = calloc(1, sizeof(*transport));
    int r;

    if (!transport)
        return -ENOMEM;
    transport->loop = loop;
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return -ENOMEM;
    transport->is_global = true;
    transport->multi = curl_multi_init();
    if (!transport->multi)
        return -ENOMEM;
    r = loop_add_deferred(loop, transport_on_time, transport, &transport->timer);
    if (r == 0)
        r = transport_configure(transport);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(transport);
    return 0;
}

/* Connections that stay open have sockets too, which the multi handle gives back at its end. */
Transport *transport_free(Transport *transport) {
    if (!transport)
        return NULL;
    while (!LIST_EMPTY(&transport->requests))
        (void)transport_cancel(LIST_FIRST(&transport->requests));
    if (transport->multi)
        (void)curl_multi_cleanup(transport->multi);
    while (!LIST_EMPTY(&transport->sockets))
        transport_socket_free(LIST_FIRST(&transport->sockets));
    (void)loop_source_free(transport->timer);
    if (transport->is_global)
        curl_global_cleanup();
    free(transport);
    return NULL;
}

int transport_send(Transport *transport, const TransportOptions *options, TransportRequest **ret) {
    _cleanup_(transport_request_freep) TransportRequest *request = NULL;
    int r = transport_request_new(options, &request);

    if (r < 0)
        return r;
    if (curl_multi_add_handle(transport->multi, request->easy) != CURLM_OK)
        return -ENOMEM;
    request->transport = transport;
    LIST_INSERT_HEAD(&transport->requests, request, list);
    *ret = TAKE_PTR(request);
    return 0;
}

TransportRequest *transport_cancel(TransportRequest *request) {
    if (!request)
        return NULL;
    LIST_REMOVE(request, list);
    (void)curl_multi_remove_handle(request->transport->multi, request->easy);
    return transport_request_free(request);
}
