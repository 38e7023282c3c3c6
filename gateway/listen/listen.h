/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What others ask of the gateway over HTTP: profiles of any window, metrics, its health. The only
 * includer of evhttp. */

#include "config/gateway-config.h"
#include "loop/loop.h"
#include "source/source.h"
#include "status/status.h"

typedef struct Listen Listen;

/* The content of TokenFile=, CertificateFile= and KeyFile=. */
typedef struct ListenSecret ListenSecret;
/* Without an address in the configuration there is nothing to read. On an error *ret_problem is the
 * sentence of what failed; it is static. */
int listen_secret_load(const GatewayConfig *config, ListenSecret **ret, const char **ret_problem);
ListenSecret *listen_secret_free(ListenSecret *secret);
DEFINE_CLEANUP(ListenSecret *, listen_secret_free);

typedef struct ListenOptions {
    const GatewayConfig *config; /* borrowed */
    const ListenSecret *secret;  /* of the configuration; borrowed */
    Loop *loop;
    Source *source;
    /* Fills in the state of the whole program, for /metrics and /readyz. */
    void (*status)(void *userdata, GatewayStatus *ret);
    void *userdata;
    uint64_t patience_ns; /* how long a client may take for a request, or to read an answer; 0: as
                           * long as LISTEN_PATIENCE_NS */
} ListenOptions;

#define LISTEN_PATIENCE_NS (30 * UINT64_C(1000000000))

/* Without a socket and an address in the configuration it listens nowhere. -EACCES with a sentence
 * in *ret_problem: the address is not loopback, and there is no TLS or no token. For other errors
 * too it is the sentence of what failed; it is static. */
int listen_new(const ListenOptions *options, Listen **ret, const char **ret_problem);
Listen *listen_free(Listen *listen);
DEFINE_CLEANUP(Listen *, listen_free);
/* From the next request on, and the next client: borrowed instead of the one of the options, and of
 * the same keys of the configuration. */
void listen_use_secret(Listen *listen, const ListenSecret *secret);

typedef struct ListenCounts {
    uint64_t scrapes;         /* requests that were answered with what they asked for */
    uint64_t refused_clients; /* requests and connections that were refused or given up */
} ListenCounts;
void listen_counts(const Listen *listen, ListenCounts *ret);
