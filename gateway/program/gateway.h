/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The running gateway: owns the loop, the source, the destinations and the listener, and connects
 * them. */

#include "program/gateway-option.h"
#include "util/macro.h"

typedef struct Gateway Gateway;

/* A failure was logged. */
int gateway_new(const GatewayOptions *options, Gateway **ret);
Gateway *gateway_free(Gateway *gateway);
DEFINE_CLEANUP(Gateway *, gateway_free);
/* Returns 0 when it was asked to stop. */
int gateway_run(Gateway *gateway);
