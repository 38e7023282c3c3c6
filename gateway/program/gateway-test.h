/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Sends a profile whose sums are known to one destination, and asks the engine for it. */

#include "program/gateway-option.h"

/* Prints what came of it on stdout. 0: the engine has the profile; a negative errno, which was
 * logged. */
int gateway_test(const GatewayOptions *options);
