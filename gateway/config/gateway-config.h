/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The configuration of the gateway: one struct for the program, one for each destination. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/config-file.h"
#include "config/config-table.h"
#include "label/relabel.h"
#include "util/macro.h"

enum {
    GATEWAY_SENDS_MAX = 16,
    GATEWAY_RULES_MAX = 64,
    GATEWAY_NAME_MAX = 64,
    GATEWAY_TEXT_MAX = 208, /* a line of a configuration has at most 198 characters */
};

/* A [Relabel NAME] section; rules apply in the order of the files. */
typedef struct GatewayRule {
    char name[GATEWAY_NAME_MAX];
    char sends[GATEWAY_TEXT_MAX]; /* names of destinations, by spaces; "": all */
    RelabelRule *rule;
    /* The text of `rule`. */
    RelabelAction action;
    char source_labels[GATEWAY_TEXT_MAX], separator[GATEWAY_TEXT_MAX], regex[GATEWAY_TEXT_MAX];
    char target_label[GATEWAY_TEXT_MAX], replacement[GATEWAY_TEXT_MAX];
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
    uint32_t max_label_values;  /* of each label of an interval, likewise */
    uint64_t max_bytes_per_sec; /* of the backlog; 0: no limit */
    char ca_file[GATEWAY_TEXT_MAX], certificate_file[GATEWAY_TEXT_MAX], key_file[GATEWAY_TEXT_MAX];
    char token_file[GATEWAY_TEXT_MAX];    /* a bearer token */
    char password_file[GATEWAY_TEXT_MAX]; /* USER:PASSWORD of basic auth; of `s3` KEY:SECRET */
    char credential[GATEWAY_NAME_MAX];    /* instead: a name in $CREDENTIALS_DIRECTORY */
    char proxy[GATEWAY_TEXT_MAX], tenant[GATEWAY_TEXT_MAX];
    char region[GATEWAY_NAME_MAX];  /* of `s3` */
    char content[GATEWAY_NAME_MAX]; /* "profiles", "recordings", "snapshots"; "": what is usual */
    /* of recordings and snapshots */
    char key_template[GATEWAY_TEXT_MAX];
    uint64_t object_interval_ns;
} SendConfig;

typedef struct GatewayConfig {
    unsigned references;
    char socket[GATEWAY_TEXT_MAX]; /* of profd; "": the default one */
    char session[GATEWAY_NAME_MAX];
    uint64_t interval_ns;
    char host[GATEWAY_NAME_MAX * 4]; /* the label; never empty once it is loaded */
    bool inlines;
    /* [Listen] */
    char listen_socket[GATEWAY_TEXT_MAX];  /* "": none; without a slash: in the runtime folder */
    char listen_address[GATEWAY_TEXT_MAX]; /* ADDRESS:PORT; "": none */
    char listen_certificate_file[GATEWAY_TEXT_MAX], listen_key_file[GATEWAY_TEXT_MAX];
    char listen_token_file[GATEWAY_TEXT_MAX];
    SendConfig sends[GATEWAY_SENDS_MAX];
    size_t n_sends;
    GatewayRule rules[GATEWAY_RULES_MAX];
    size_t n_rules;
} GatewayConfig;

/* -EINVAL with a static sentence in *ret_problem: what the keys of a destination of recordings say
 * together is wrong. */
typedef int (*GatewayStoreCheck)(const SendConfig *send, const char **ret_problem);

/*
 * Loads `path` (NULL: the first profd/gateway.conf in /etc, /run, /usr/lib; none is fine) with its
 * drop-ins, below `root` ("": the real one). Accepts valid keys and reports the others; sections
 * that cannot work are reported and left out. Returns the number of problems, or a negative errno
 * when a file cannot be read. Destinations of recordings are checked by `check_store`, unless it is
 * NULL.
 */
int gateway_config_load(const char *root, const char *path, GatewayStoreCheck check_store,
                        ConfigProblem on_problem, void *userdata, GatewayConfig **ret);
GatewayConfig *gateway_config_ref(GatewayConfig *config);
/* Frees it when nobody holds a reference any more. */
GatewayConfig *gateway_config_free(GatewayConfig *config);
DEFINE_CLEANUP(GatewayConfig *, gateway_config_free);

/* NULL: there is no such destination. */
const SendConfig *gateway_config_send(const GatewayConfig *config, const char *name);
/* Whether it gets recordings or snapshots of profd as they are, and no profiles. */
bool gateway_send_keeps_recordings(const SendConfig *send);
/* Whether a rule applies to a destination. */
bool gateway_rule_is_for(const GatewayRule *rule, const char *send);

/* For a reload: whether both configurations say the same of what is followed, of the listener, and
 * of one destination. */
bool gateway_config_same_source(const GatewayConfig *a, const GatewayConfig *b);
bool gateway_config_same_listen(const GatewayConfig *a, const GatewayConfig *b);
bool gateway_config_same_send(const GatewayConfig *a, const GatewayConfig *b, const char *name);

/* The table of all keys, with "Gateway", "Listen", "Relabel" and "Send" as sections. */
ConfigTable gateway_config_table(void);
