/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What others ask of the gateway over HTTP: profiles of any window, metrics, its health. The only
 * includer of evhttp. */

#include "config/gateway-config.h"
#include "loop/loop.h"
#include "status/status.h"
#include "source/source.h"

typedef struct Listen Listen;

typedef struct ListenOptions {
    const GatewayConfig *config; /* borrowed */
    Loop *loop;
    Source *source;
    /* Fills in the state of the whole program, for /metrics, /healthz and /readyz. */
    void (*status)(void *userdata, GatewayStatus *ret);
    void *userdata;
} ListenOptions;

/* -EACCES with a sentence in *ret_problem: the address is not loopback, and there is no TLS or no
 * token. *ret_problem is static. */
int listen_new(const ListenOptions *options, Listen **ret, const char **ret_problem);
Listen *listen_free(Listen *listen);
DEFINE_CLEANUP(Listen *, listen_free);
