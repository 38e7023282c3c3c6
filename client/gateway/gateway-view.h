/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Prints the state of the gateway for people. */

#include <jansson.h>

#include "client/frame/command.h"

typedef enum GatewayLife {
    GATEWAY_RUNNING,
    GATEWAY_STALE, /* its process is there, and has not written its state for long */
    GATEWAY_GONE,  /* its process is not there any more */
    GATEWAY_LIVES,
} GatewayLife;

extern const char *const gateway_life_names[GATEWAY_LIVES];

/* Whether a destination or the source needs somebody's attention. */
bool gateway_view_is_degraded(const json_t *status);
void gateway_view_show(Context *c, const json_t *status, GatewayLife life, uint64_t now_us);
