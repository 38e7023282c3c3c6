/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Tests a destination of Type=s3: stores a small object, reads it back and deletes it. */

#include "config/gateway-config.h"

/* Reports on stdout, or in the log with a negative errno. */
int gateway_store_test(const GatewayConfig *config, const SendConfig *send);
