/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <event2/buffer.h>
#include <event2/keyvalq_struct.h>
#include <string.h>

#include "listen/listen-private.h"
#include "listen/listen-socket.h"
#include "util/clock.h"
#include "util/text.h"
#include "util/thread.h"

/*
 * The listener as a whole: opens its sockets, decides who may ask, and finds what answers. Requests
 * are parsed by evhttp and TLS is OpenSSL's; what is parsed here are short texts, in listen-text.c
 * and listen-query.c.
 */

#define ANSWER_NS (60 * NS_PER_SECOND)

static void listen_serve_index(Listen *listen, ListenPeer *peer) {
    static const char page[] =
        "<!DOCTYPE html>\n<html><head><title>/debug/pprof/</title></head><body>\n"
        "<h1>profd</h1>\n<p>Profiles of this whole host, of any time that profd has recorded.</p>\n"
        "<ul>\n"
        "<li><a href=\"/debug/pprof/profile?seconds=30\">/debug/pprof/profile</a>: pprof of the "
        "past <i>seconds</i>, or of those from <i>since</i> on (seconds since 1970, or a span such "
        "as -10min); <i>unit</i> and <i>pid</i> select</li>\n"
        "<li><a href=\"/debug/pprof/symbol\">/debug/pprof/symbol</a>: names of kernel addresses of "
        "the last profile</li>\n"
        "<li><a href=\"/metrics\">/metrics</a>: of profd and of the gateway</li>\n"
        "<li><a href=\"/healthz\">/healthz</a>, <a href=\"/readyz\">/readyz</a></li>\n"
        "</ul>\n</body></html>\n";
    Buffer body = {};

    text_puts(&body, page);
    listen_reply_buffer(listen, peer, "text/html; charset=utf-8", &body);
    buffer_done(&body);
}

static void listen_serve_symbol(Listen *listen, ListenPeer *peer) {
    struct evhttp_request *request = listen_peer_request(peer);
    struct evbuffer *input = evhttp_request_get_input_buffer(request);
    size_t size = evbuffer_get_length(input);
    Buffer body = {};
    int r = 0;

    text_puts(&body, "num_symbols: 1\n");
    if (size > 0) {
        const uint8_t *data = evbuffer_pullup(input, -1);

        r = data ? listen_symbols_answer(&listen->symbols, (Bytes){.data = data, .size = size},
                                         &body)
                 : -ENOMEM;
    }
    if (r == -EINVAL || r == -E2BIG)
        listen_reply_sentence(listen, peer, HTTP_BADREQUEST,
                              "The body is 0xADDR+0xADDR and so on, up to 4096 addresses.");
    else
        listen_reply_buffer(listen, peer, "text/plain; charset=utf-8", &body);
    buffer_done(&body);
}

static void listen_serve_health(Listen *listen, ListenPeer *peer) {
    listen_reply_sentence(listen, peer, HTTP_OK, "ok");
}

static void listen_serve_readiness(Listen *listen, ListenPeer *peer) {
    GatewayStatus status = {};

    listen->options.status(listen->options.userdata, &status);
    if (status.source.connected)
        listen_reply_sentence(listen, peer, HTTP_OK, "ok");
    else
        listen_reply_sentence(listen, peer, HTTP_SERVUNAVAIL,
                              status.source.hangs ? "Reading from profd hangs."
                                                  : "The gateway does not reach profd.");
}

typedef struct ListenRoute {
    const char *path;
    unsigned methods;
    void (*serve)(Listen *listen, ListenPeer *peer);
} ListenRoute;

#define READS (EVHTTP_REQ_GET | EVHTTP_REQ_HEAD)

/* clang-format off */
static const ListenRoute listen_routes[] = {
    {"/",                     READS,                   listen_serve_index},
    {"/debug/pprof/",         READS,                   listen_serve_index},
    {"/debug/pprof/profile",  READS,                   listen_profile_serve},
    {"/debug/pprof/symbol",   READS | EVHTTP_REQ_POST, listen_serve_symbol},
    {"/metrics",              READS,                   listen_metrics_serve},
    {"/healthz",              READS,                   listen_serve_health},
    {"/readyz",               READS,                   listen_serve_readiness},
};
/* clang-format on */

static bool listen_may_ask(Listen *listen, ListenPeer *peer) {
    struct evkeyvalq *headers = evhttp_request_get_input_headers(listen_peer_request(peer));
    const char *host = evhttp_find_header(headers, "Host");

    switch (listen_peer_trust(peer)) {
    case LISTEN_TRUSTS_RIGHTS:
        return true;
    case LISTEN_TRUSTS_HOST:
        if (!host || listen_host_is_local(host))
            return true;
        listen_reply_sentence(listen, peer, 403,
                              "This address is for programs of this host, and the Host header "
                              "names another one.");
        return false;
    case LISTEN_TRUSTS_TOKEN:
    default:
        if (listen_token_matches(listen->options.secret->token,
                                 evhttp_find_header(headers, "Authorization")))
            return true;
        listen_reply_header(peer, "WWW-Authenticate", "Bearer");
        listen_reply_sentence(listen, peer, 401,
                              "This needs the header Authorization: Bearer, with the token of "
                              "TokenFile=.");
        return false;
    }
}

static void listen_on_request(void *userdata, ListenPeer *peer) {
    Listen *listen = userdata;
    struct evhttp_request *request = listen_peer_request(peer);
    const char *path = evhttp_uri_get_path(evhttp_request_get_evhttp_uri(request));

    if (!listen_may_ask(listen, peer))
        return;
    for (size_t i = 0; i < ARRAY_SIZE(listen_routes); i++) {
        const ListenRoute *route = &listen_routes[i];

        if (!path || strcmp(route->path, path) != 0)
            continue;
        if (route->methods & evhttp_request_get_command(request)) {
            route->serve(listen, peer);
            return;
        }
        listen_reply_header(peer, "Allow", "GET, HEAD");
        listen_reply_sentence(listen, peer, HTTP_BADMETHOD, "Only GET and HEAD are for this path.");
        return;
    }
    listen_reply_sentence(listen, peer, HTTP_NOTFOUND,
                          "There is no such path; /debug/pprof/ lists those that there are.");
}

static int listen_open_unix(Listen *listen, const char **ret_problem) {
    const char *path = listen->options.config->listen_socket;
    int fd, r;

    if (!*path)
        return 0;
    *ret_problem = "The socket of Socket= in [Listen] cannot be opened.";
    r = listen_socket_open_unix(path, &fd);
    if (r == -EADDRINUSE)
        *ret_problem = "Socket= of [Listen] is in use by another process.";
    else if (r == -EEXIST)
        *ret_problem = "The file at Socket= of [Listen] is no socket.";
    if (r < 0)
        return r;
    listen->socket = path;
    return listen_peers_serve(listen->peers, fd, NULL, LISTEN_TRUSTS_RIGHTS);
}

static int listen_open_address(Listen *listen, const char **ret_problem) {
    const ListenSecret *secret = listen->options.secret;
    ListenTrust trust;
    ListenAddress address;
    int fd, r;

    if (!*listen->options.config->listen_address)
        return 0;
    *ret_problem = "Address= of [Listen] is no ADDRESS:PORT, such as 127.0.0.1:9137 or [::1]:9137.";
    r = listen_address_parse(listen->options.config->listen_address, &address);
    if (r < 0)
        return r;
    if (!address.is_loopback && (!secret->tls || !secret->token[0])) {
        *ret_problem = "Address= of [Listen] is not a loopback address, so others could read the "
                       "profiles: set CertificateFile=, KeyFile= and TokenFile= as well.";
        return -EACCES;
    }
    *ret_problem = "Address= of [Listen] cannot be listened on.";
    r = listen_socket_open_address(&address, &fd);
    if (r < 0)
        return r;
    trust = secret->token[0] ? LISTEN_TRUSTS_TOKEN : LISTEN_TRUSTS_HOST;
    return listen_peers_serve(listen->peers, fd, secret->tls, trust);
}

static int listen_new_worker(const Listen *listen, const char *name, Worker **ret) {
    const WorkerOptions options = {.name = name, .nice = THREAD_NICE_LAST, .starts_on_work = true};

    return worker_new(listen->options.loop, &options, ret);
}

int listen_new(const ListenOptions *options, Listen **ret, const char **ret_problem) {
    _cleanup_(listen_freep) Listen *listen = calloc(1, sizeof(*listen));
    ListenPeersOptions peers = {
        .loop = options->loop,
        .patience_ns = options->patience_ns ?: LISTEN_PATIENCE_NS,
        .answer_ns = ANSWER_NS,
        .on_request = listen_on_request,
        .userdata = listen,
    };
    int r;

    *ret_problem = "There is no memory for the listener.";
    if (!listen)
        return -ENOMEM;
    listen->options = *options;
    listen->slots = calloc(1, sizeof(*listen->slots));
    if (!listen->slots)
        return -ENOMEM;
    listen->slots->references = 1;
    r = listen_peers_new(&peers, &listen->peers);
    if (r == 0)
        r = listen_new_worker(listen, "profiles", &listen->profiles);
    if (r == 0)
        r = listen_new_worker(listen, "scrapes", &listen->scrapes);
    if (r == 0)
        r = listen_open_address(listen, ret_problem);
    if (r == 0)
        r = listen_open_unix(listen, ret_problem);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(listen);
    return 0;
}

Listen *listen_free(Listen *listen) {
    if (!listen)
        return NULL;
    if (listen->socket)
        (void)unlink(listen->socket);
    /* Jobs lose their clients first, and end with the workers. */
    listen_peers_free(listen->peers);
    worker_free(listen->profiles);
    worker_free(listen->scrapes);
    listen_slots_unref(listen->slots);
    listen_symbols_done(&listen->symbols);
    free(listen);
    return NULL;
}

void listen_use_secret(Listen *listen, const ListenSecret *secret) {
    listen->options.secret = secret;
    listen_peers_use_tls(listen->peers, secret->tls);
}

void listen_counts(const Listen *listen, ListenCounts *ret) {
    *ret = listen->counts;
    ret->refused_clients += listen_peers_given_up(listen->peers);
}
