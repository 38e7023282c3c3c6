/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads the configuration that the command line names. */

#include "config/gateway-config.h"
#include "program/gateway-option.h"

/* Logs each problem. Returns their number, or a negative errno that was logged. */
int gateway_read_config(const GatewayOptions *options, GatewayConfig **ret);
