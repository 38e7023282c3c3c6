/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "listen/listen-peer.h"

#include <errno.h>
#include <event2/bufferevent_ssl.h>
#include <event2/event.h>
#include <event2/http_struct.h>
#include <event2/listener.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "util/clock.h"

/*
 * Connections of evhttp, and their bounds. evhttp itself bounds the size of a request and the time
 * in which nothing happens, but neither the number of connections nor the time of one that sends a
 * byte now and then. So each gets a row here when its bufferevent is made. evhttp makes the
 * connection around that a moment later and passes it to the callbacks of the bufferevent, from
 * where listen_peers_adopt() has it; from then on evhttp reports its end.
 */

enum { SITES_MAX = 2 };

/* When all places are taken, a client that has sent no request for so long makes place. */
#define SPARE_NS    (2 * NS_PER_SECOND)
#define INTERVAL_NS NS_PER_SECOND

typedef enum PeerState { PEER_READING, PEER_ANSWERING, PEER_SENDING, PEER_STATES } PeerState;

typedef struct ListenSite {
    ListenPeers *peers;
    struct evhttp *http;
    struct evconnlistener *listener; /* of http */
    SSL_CTX *tls;
    ListenTrust trust;
} ListenSite;

struct ListenPeer {
    LIST_ENTRY(ListenPeer) list;
    ListenSite *site;
    struct bufferevent *newcomer; /* a reference, while it has no connection */
    struct evhttp_connection *connection;
    struct evhttp_request *request; /* while it is answered */
    PeerState state;
    uint64_t since_ns; /* in this state */
    ListenPeerEnded ended;
    void *userdata;
};

struct ListenPeers {
    ListenPeersOptions options;
    LoopSource *tick;
    ListenSite sites[SITES_MAX];
    size_t n_sites, n;
    uint64_t given_up;
    LIST_HEAD(, ListenPeer) list;
};

static void listen_peers_accept(ListenPeers *peers, bool accepts) {
    for (size_t i = 0; i < peers->n_sites; i++)
        (void)(accepts ? evconnlistener_enable : evconnlistener_disable)(peers->sites[i].listener);
}

static void listen_peer_enter(ListenPeer *peer, PeerState state) {
    peer->state = state;
    peer->since_ns = clock_monotonic_ns();
}

static void listen_peer_end(ListenPeer *peer, ListenPeerEnd end) {
    ListenPeerEnded ended = peer->ended;

    peer->ended = NULL;
    if (ended)
        ended(peer->userdata, end);
}

static void listen_peer_remove(ListenPeer *peer) {
    ListenPeers *peers = peer->site->peers;

    listen_peer_end(peer, LISTEN_PEER_GONE);
    LIST_REMOVE(peer, list);
    free(peer);
    if (peers->n-- == LISTEN_PEERS_MAX)
        listen_peers_accept(peers, true);
}

static void listen_peer_on_close(struct evhttp_connection *connection _unused_, void *userdata) {
    listen_peer_remove(userdata);
}

/* Without a connection it came to nothing. */
static void listen_peer_adopt(ListenPeer *peer) {
    void *connection = NULL;

    bufferevent_getcb(peer->newcomer, NULL, NULL, NULL, &connection);
    (void)bufferevent_decref(peer->newcomer);
    peer->newcomer = NULL;
    peer->connection = connection;
    if (connection)
        evhttp_connection_set_closecb(connection, listen_peer_on_close, peer);
    else
        listen_peer_remove(peer);
}

static void listen_peers_adopt(ListenPeers *peers) {
    ListenPeer *peer = LIST_FIRST(&peers->list), *next;

    for (; peer; peer = next) {
        next = LIST_NEXT(peer, list);
        if (peer->newcomer)
            listen_peer_adopt(peer);
    }
}

static struct bufferevent *listen_site_new_bufferevent(struct event_base *base, SSL_CTX *tls) {
    struct bufferevent *bufferevent;
    SSL *ssl;

    if (!tls)
        return bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);
    ssl = SSL_new(tls);
    if (!ssl)
        return NULL;
    bufferevent = bufferevent_openssl_socket_new(base, -1, ssl, BUFFEREVENT_SSL_ACCEPTING,
                                                 BEV_OPT_CLOSE_ON_FREE);
    if (bufferevent)
        bufferevent_openssl_set_allow_dirty_shutdown(bufferevent, 1);
    else
        SSL_free(ssl);
    return bufferevent;
}

/* evhttp has accepted a client. After NULL it makes a bufferevent itself, without TLS; its requests
 * are refused, because no peer has that connection. */
static struct bufferevent *listen_site_on_accept(struct event_base *base, void *userdata) {
    ListenSite *site = userdata;
    ListenPeers *peers = site->peers;
    _cleanup_free_ ListenPeer *peer = calloc(1, sizeof(*peer));

    listen_peers_adopt(peers);
    if (!peer || peers->n >= LISTEN_PEERS_MAX || loop_trigger(peers->tick) < 0)
        return NULL;
    peer->newcomer = listen_site_new_bufferevent(base, site->tls);
    if (!peer->newcomer)
        return NULL;
    bufferevent_incref(peer->newcomer);
    peer->site = site;
    listen_peer_enter(peer, PEER_READING);
    LIST_INSERT_HEAD(&peers->list, peer, list);
    if (++peers->n == LISTEN_PEERS_MAX)
        listen_peers_accept(peers, false);
    return TAKE_PTR(peer)->newcomer;
}

static void listen_site_on_request(struct evhttp_request *request, void *userdata) {
    ListenSite *site = userdata;
    ListenPeers *peers = site->peers;
    struct evhttp_connection *connection = evhttp_request_get_connection(request);
    ListenPeer *peer;

    listen_peers_adopt(peers);
    LIST_FOREACH(peer, &peers->list, list)
        if (peer->connection == connection)
            break;
    if (!peer) {
        evhttp_connection_free(connection);
        return;
    }
    peer->request = request;
    listen_peer_enter(peer, PEER_ANSWERING);
    peers->options.on_request(peers->options.userdata, peer);
}

static uint64_t listen_peers_limit(const ListenPeers *peers, PeerState state) {
    return state == PEER_ANSWERING ? peers->options.answer_ns : peers->options.patience_ns;
}

static void listen_peer_check(ListenPeer *peer, uint64_t now_ns) {
    ListenPeers *peers = peer->site->peers;

    if (now_ns - peer->since_ns < listen_peers_limit(peers, peer->state))
        return;
    peers->given_up++;
    if (peer->state == PEER_ANSWERING)
        listen_peer_end(peer, LISTEN_PEER_LATE);
    else
        evhttp_connection_free(peer->connection);
}

static void listen_peers_make_place(ListenPeers *peers, uint64_t now_ns) {
    ListenPeer *peer, *oldest = NULL;

    LIST_FOREACH(peer, &peers->list, list)
        if (peer->state == PEER_READING && now_ns - peer->since_ns >= SPARE_NS &&
            (!oldest || peer->since_ns < oldest->since_ns))
            oldest = peer;
    if (!oldest)
        return;
    peers->given_up++;
    evhttp_connection_free(oldest->connection);
}

static int listen_peers_on_tick(void *userdata) {
    ListenPeers *peers = userdata;
    uint64_t now_ns = clock_monotonic_ns();
    ListenPeer *peer, *next;

    listen_peers_adopt(peers);
    for (peer = LIST_FIRST(&peers->list); peer; peer = next) {
        next = LIST_NEXT(peer, list);
        listen_peer_check(peer, now_ns);
    }
    if (peers->n == LISTEN_PEERS_MAX)
        listen_peers_make_place(peers, now_ns);
    return peers->n > 0 ? loop_trigger_after(peers->tick, INTERVAL_NS) : 0;
}

int listen_peers_new(const ListenPeersOptions *options, ListenPeers **ret) {
    _cleanup_(listen_peers_freep) ListenPeers *peers = calloc(1, sizeof(*peers));
    int r;

    if (!peers)
        return -ENOMEM;
    peers->options = *options;
    LIST_INIT(&peers->list);
    r = loop_add_deferred(options->loop, listen_peers_on_tick, peers, &peers->tick);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(peers);
    return 0;
}

ListenPeers *listen_peers_free(ListenPeers *peers) {
    if (!peers)
        return NULL;
    listen_peers_adopt(peers);
    while (!LIST_EMPTY(&peers->list))
        evhttp_connection_free(LIST_FIRST(&peers->list)->connection);
    for (size_t i = 0; i < peers->n_sites; i++)
        evhttp_free(peers->sites[i].http);
    loop_source_free(peers->tick);
    free(peers);
    return NULL;
}

static void listen_site_set_up(ListenSite *site) {
    struct timeval timeout = {
        .tv_sec = (time_t)(site->peers->options.patience_ns / NS_PER_SECOND) + 5,
    };

    evhttp_set_allowed_methods(site->http, EVHTTP_REQ_GET | EVHTTP_REQ_HEAD | EVHTTP_REQ_POST);
    evhttp_set_max_headers_size(site->http, LISTEN_HEADERS_MAX);
    evhttp_set_max_body_size(site->http, LISTEN_BODY_MAX);
    evhttp_set_default_content_type(site->http, NULL);
    evhttp_set_timeout_tv(site->http, &timeout);
    evhttp_set_bevcb(site->http, listen_site_on_accept, site);
    evhttp_set_gencb(site->http, listen_site_on_request, site);
}

int listen_peers_serve(ListenPeers *peers, int fd, SSL_CTX *tls, ListenTrust trust) {
    _cleanup_close_ int taken = fd;
    ListenSite *site = &peers->sites[peers->n_sites];
    struct evhttp_bound_socket *bound;

    assert(peers->n_sites < SITES_MAX);
    *site = (ListenSite){.peers = peers, .tls = tls, .trust = trust};
    site->http = evhttp_new(loop_base(peers->options.loop));
    if (!site->http)
        return -ENOMEM;
    listen_site_set_up(site);
    bound = evhttp_accept_socket_with_handle(site->http, taken);
    if (!bound) {
        evhttp_free(site->http);
        return -ENOMEM;
    }
    (void)TAKE_FD(taken);
    site->listener = evhttp_bound_socket_get_listener(bound);
    peers->n_sites++;
    return 0;
}

void listen_peers_use_tls(ListenPeers *peers, SSL_CTX *tls) {
    for (size_t i = 0; i < peers->n_sites; i++)
        if (peers->sites[i].tls)
            peers->sites[i].tls = tls;
}

uint64_t listen_peers_given_up(const ListenPeers *peers) {
    return peers->given_up;
}

struct evhttp_request *listen_peer_request(const ListenPeer *peer) {
    return peer->request;
}

ListenTrust listen_peer_trust(const ListenPeer *peer) {
    return peer->site->trust;
}

void listen_peer_wait(ListenPeer *peer, ListenPeerEnded ended, void *userdata) {
    peer->ended = ended;
    peer->userdata = userdata;
}

/* It may send the next request. */
static void listen_peer_on_sent(struct evhttp_request *request _unused_, void *userdata) {
    listen_peer_enter(userdata, PEER_READING);
}

void listen_peer_answer(ListenPeer *peer, int status, struct evbuffer *body) {
    struct evhttp_request *request = peer->request;

    peer->request = NULL;
    peer->ended = NULL;
    listen_peer_enter(peer, PEER_SENDING);
    evhttp_request_set_on_complete_cb(request, listen_peer_on_sent, peer);
    evhttp_send_reply(request, status, NULL, body);
}
