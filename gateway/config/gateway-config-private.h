/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the files of this room share. */

#include "config/config-text.h"
#include "config/gateway-config.h"

#define SECTION_GATEWAY "Gateway"
#define SECTION_LISTEN  "Listen"
#define SECTION_RELABEL "Relabel"
#define SECTION_SEND    "Send"

enum { GATEWAY_KEYS_MAX = 64 };

/* Where a section or a key was written; path NULL: nowhere. */
typedef struct GatewayOrigin {
    const char *path;
    unsigned line;
} GatewayOrigin;

/* The lines of one section: that of its last heading, and one for each row of the table. */
typedef struct GatewayOrigins {
    GatewayOrigin heading, keys[GATEWAY_KEYS_MAX];
    bool is_bad;       /* a line of it was refused */
    bool names_nobody; /* a rule: it is for a destination that does not exist */
} GatewayOrigins;

/* The state of loading. */
typedef struct GatewayLoad {
    GatewayConfig *config;
    ConfigFiles files;
    GatewayOrigins *whole; /* of [Gateway] and [Listen], which have no key in common */
    GatewayOrigins *sends; /* one for each destination, */
    GatewayOrigins *rules; /* and for each rule */
    GatewayStoreCheck check_store;
    GatewayOrigin refused; /* the last line that is not understood and may be part of a rule */
} GatewayLoad;

/* Fills load->config from the files; returns the number of problems, including those of finding
 * the files. */
int gateway_load_take(GatewayLoad *load);
void gateway_load_done(GatewayLoad *load);
/* Reports a problem at the key, or at the heading where nobody wrote that key. */
void gateway_load_report(GatewayLoad *load, const GatewayOrigins *origins, const char *section,
                         const char *key, const char *format, ...) _printf_(5, 6);
/* Whether somebody wrote that key. */
bool gateway_load_has(const GatewayOrigins *origins, const char *section, const char *key);

/* Checks keys together, leaves sections out that cannot work, and compiles the rules. Returns 0 or
 * -ENOMEM. */
int gateway_check(GatewayLoad *load);
