/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The clients that are connected, each with the request that it waits for. There are at most
 * LISTEN_PEERS_MAX; each step, reading a request, making the answer, sending it, has its time, and
 * who takes longer is disconnected.
 */

#include <event2/http.h>
#include <openssl/ssl.h>

#include "loop/loop.h"

enum {
    LISTEN_PEERS_MAX = 64,
    LISTEN_HEADERS_MAX = 8192,    /* bytes of a request line and its headers */
    LISTEN_BODY_MAX = 128 * 1024, /* bytes of a request's body */
};

typedef struct ListenPeers ListenPeers;
typedef struct ListenPeer ListenPeer;

/* How much a socket trusts those that connect to it. */
typedef enum ListenTrust {
    LISTEN_TRUSTS_RIGHTS, /* those who may open it */
    LISTEN_TRUSTS_HOST,   /* programs of this host, but no page in a browser */
    LISTEN_TRUSTS_TOKEN,  /* those who send the token */
} ListenTrust;

typedef struct ListenPeersOptions {
    Loop *loop;
    uint64_t patience_ns; /* for a request, and for sending an answer */
    uint64_t answer_ns;   /* for making one */
    /* A request has come; it must be answered, now or later. */
    void (*on_request)(void *userdata, ListenPeer *peer);
    void *userdata;
} ListenPeersOptions;

int listen_peers_new(const ListenPeersOptions *options, ListenPeers **ret);
/* Disconnects all. */
ListenPeers *listen_peers_free(ListenPeers *peers);
DEFINE_CLEANUP(ListenPeers *, listen_peers_free);
/* Accepts clients from a socket that listens, and takes it over; tls NULL: none; borrowed. At most
 * twice. */
int listen_peers_serve(ListenPeers *peers, int fd, SSL_CTX *tls, ListenTrust trust);
/* The next clients of the socket with TLS get this one instead; borrowed. */
void listen_peers_use_tls(ListenPeers *peers, SSL_CTX *tls);
/* Connections that were given up, because they took too long or others had to be served. */
uint64_t listen_peers_given_up(const ListenPeers *peers);

struct evhttp_request *listen_peer_request(const ListenPeer *peer);
ListenTrust listen_peer_trust(const ListenPeer *peer);

/* Why nobody waits for an answer any more. */
typedef enum ListenPeerEnd {
    LISTEN_PEER_GONE,
    LISTEN_PEER_LATE, /* it takes too long; the callback answers so */
} ListenPeerEnd;
/* Called at most once, and not after listen_peer_answer(). */
typedef void (*ListenPeerEnded)(void *userdata, ListenPeerEnd end);
/* The answer comes later. */
void listen_peer_wait(ListenPeer *peer, ListenPeerEnded ended, void *userdata);
/* Sends the answer; headers are those of the request's output, and the body is taken out of `body`
 * (NULL: none). */
void listen_peer_answer(ListenPeer *peer, int status, struct evbuffer *body);
