/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The configuration of the gateway: one struct for the program, one for each destination. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/config-file.h"
#include "label/relabel.h"
#include "util/macro.h"

enum {
    GATEWAY_SENDS_MAX = 16,
    GATEWAY_RULES_MAX = 64,
    GATEWAY_NAME_MAX = 64,
    GATEWAY_TEXT_MAX = 1024,
};

/* A [Relabel NAME] section; rules apply in the order of the files. */
typedef struct GatewayRule {
    char name[GATEWAY_NAME_MAX];
    char sends[GATEWAY_TEXT_MAX]; /* names of destinations, by spaces; "": all */
    RelabelRule *rule;
} GatewayRule;

/* A [Send NAME] section. */
typedef struct SendConfig {
    char name[GATEWAY_NAME_MAX];
    char type[GATEWAY_NAME_MAX]; /* a row of engines[] */
    char url[GATEWAY_TEXT_MAX];  /* http(s)://HOST[:PORT][/PATH]; of `file`: a folder */
    uint64_t timeout_ns;
    bool compress;
    uint32_t share_percent;     /* of the intervals of this host that are sent: 1 to 100 */
    uint64_t max_age_ns;        /* older intervals are not sent; 0: that of the engine */
    uint64_t max_body_bytes;    /* of a request, before compression; 0: that of the engine */
    uint32_t max_series;        /* of an interval; the rest becomes `other` */
    uint64_t max_bytes_per_sec; /* of the backlog; 0: no limit */
    char ca_file[GATEWAY_TEXT_MAX], certificate_file[GATEWAY_TEXT_MAX], key_file[GATEWAY_TEXT_MAX];
    char token_file[GATEWAY_TEXT_MAX];    /* a bearer token */
    char password_file[GATEWAY_TEXT_MAX]; /* USER:PASSWORD of basic auth */
    char credential[GATEWAY_NAME_MAX];    /* instead: a name in $CREDENTIALS_DIRECTORY */
    char proxy[GATEWAY_TEXT_MAX], tenant[GATEWAY_TEXT_MAX];
    /* of `s3` */
    char region[GATEWAY_NAME_MAX], key_template[GATEWAY_TEXT_MAX];
    char content[GATEWAY_NAME_MAX]; /* "recordings", "snapshots" */
    uint64_t object_interval_ns;
} SendConfig;

typedef struct GatewayConfig {
    char socket[GATEWAY_TEXT_MAX]; /* of profd; "": the default one */
    char session[GATEWAY_NAME_MAX];
    uint64_t interval_ns;
    char host[GATEWAY_NAME_MAX * 4]; /* the label; "": the name of this host */
    bool inlines;
    /* [Listen] */
    char listen_socket[GATEWAY_TEXT_MAX];  /* "": none */
    char listen_address[GATEWAY_TEXT_MAX]; /* ADDRESS:PORT; "": none */
    char listen_certificate_file[GATEWAY_TEXT_MAX], listen_key_file[GATEWAY_TEXT_MAX];
    char listen_token_file[GATEWAY_TEXT_MAX];
    SendConfig sends[GATEWAY_SENDS_MAX];
    size_t n_sends;
    GatewayRule rules[GATEWAY_RULES_MAX];
    size_t n_rules;
} GatewayConfig;

/*
 * Loads `path` (NULL: the first profd/gateway.conf in /etc, /run, /usr/lib; none is fine) with its
 * drop-ins, below `root` ("": the real one). Accepts valid keys and reports the others. Returns the
 * number of problems, or a negative errno when a file cannot be read.
 */
int gateway_config_load(const char *root, const char *path, ConfigProblem on_problem,
                        void *userdata, GatewayConfig **ret);
GatewayConfig *gateway_config_free(GatewayConfig *config);
DEFINE_CLEANUP(GatewayConfig *, gateway_config_free);
