/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <event2/buffer.h>
#include <event2/keyvalq_struct.h>
#include <stdio.h>

#include "listen/listen-private.h"

/* Answers. None of them holds what the client has sent, so there is nothing to escape. */

#define RETRY_AFTER_S "5"

static void listen_reply_free_text(const void *data _unused_, size_t size _unused_, void *text) {
    free(text);
}

void listen_reply_header(ListenPeer *peer, const char *name, const char *value) {
    struct evkeyvalq *headers = evhttp_request_get_output_headers(listen_peer_request(peer));

    (void)evhttp_add_header(headers, name, value);
}

/* evhttp sends a body after HEAD too, which a client would take for the next answer. */
static void listen_reply_drop_body(ListenPeer *peer, struct evbuffer *body) {
    char length[32];

    if (!body || evhttp_request_get_command(listen_peer_request(peer)) != EVHTTP_REQ_HEAD)
        return;
    (void)snprintf(length, sizeof(length), "%zu", evbuffer_get_length(body));
    listen_reply_header(peer, "Content-Length", length);
    (void)evbuffer_drain(body, evbuffer_get_length(body));
}

void listen_reply(Listen *listen, ListenPeer *peer, int status, const char *type,
                  struct evbuffer *body) {
    listen_reply_header(peer, "Content-Type", type);
    listen_reply_header(peer, "X-Content-Type-Options", "nosniff");
    listen_reply_header(peer, "Cache-Control", "no-store");
    listen_reply_header(peer, "Content-Security-Policy", "default-src 'none'");
    if (status == HTTP_SERVUNAVAIL)
        listen_reply_header(peer, "Retry-After", RETRY_AFTER_S);
    if (status >= HTTP_BADREQUEST)
        listen->counts.refused_clients++;
    else
        listen->counts.scrapes++;
    listen_reply_drop_body(peer, body);
    listen_peer_answer(peer, status, body);
}

void listen_reply_sentence(Listen *listen, ListenPeer *peer, int status, const char *sentence) {
    struct evbuffer *body = evbuffer_new();

    if (body)
        (void)evbuffer_add_printf(body, "%s\n", sentence);
    listen_reply(listen, peer, status, "text/plain; charset=utf-8", body);
    if (body)
        evbuffer_free(body);
}

void listen_reply_buffer(Listen *listen, ListenPeer *peer, const char *type, Buffer *body) {
    struct evbuffer *out = buffer_error(body) == 0 ? evbuffer_new() : NULL;

    if (out && body->size > 0 &&
        evbuffer_add_reference(out, body->data, body->size, listen_reply_free_text, body->data) <
            0) {
        evbuffer_free(out);
        out = NULL;
    }
    if (!out) {
        listen_reply_sentence(listen, peer, HTTP_SERVUNAVAIL, "There is no memory for the answer.");
        return;
    }
    if (body->size > 0)
        *body = (Buffer){};
    listen_reply(listen, peer, HTTP_OK, type, out);
    evbuffer_free(out);
}
