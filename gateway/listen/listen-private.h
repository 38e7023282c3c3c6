/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the answers of the listener share. */

#include "listen/listen-peer.h"
#include "listen/listen-symbol.h"
#include "listen/listen-text.h"
#include "listen/listen-tls.h"
#include "listen/listen.h"
#include "loop/worker.h"

enum {
    LISTEN_PROFILES_MAX = 4, /* at once: being made, or on their way to a client */
    LISTEN_SCRAPES_MAX = 8,  /* of metrics, likewise */
};

/* Outlives the listener while profiles are on their way. */
typedef struct ListenSlots {
    unsigned references, n;
} ListenSlots;

struct ListenSecret {
    SSL_CTX *tls;                     /* NULL: no certificate */
    char token[LISTEN_TOKEN_MAX + 2]; /* "": none */
};

struct Listen {
    ListenOptions options;
    ListenPeers *peers;
    Worker *profiles, *scrapes;
    ListenSlots *slots;
    ListenSymbols symbols; /* of the last profile */
    ListenCounts counts;
    const char *socket; /* to remove; borrowed */
};

/* Answers with a body, of which everything is taken; counts. */
void listen_reply(Listen *listen, ListenPeer *peer, int status, const char *type,
                  struct evbuffer *body);
/* Answers with one sentence. With 503 the client is asked to come back in a moment. */
void listen_reply_sentence(Listen *listen, ListenPeer *peer, int status, const char *sentence);
/* Answers with the content of a buffer, which is emptied; 503 if it has an error. */
void listen_reply_buffer(Listen *listen, ListenPeer *peer, const char *type, Buffer *body);
void listen_reply_header(ListenPeer *peer, const char *name, const char *value);

void listen_profile_serve(Listen *listen, ListenPeer *peer);
void listen_slots_unref(ListenSlots *slots);
void listen_metrics_serve(Listen *listen, ListenPeer *peer);
