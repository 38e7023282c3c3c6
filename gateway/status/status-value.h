/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What both forms of the state derive from the figures of a destination. */

#include "status/status.h"

/* The last request arrived, and nothing has failed since. */
bool status_send_is_up(const DestinationStatus *send);
/* The age of the newest samples that were read from profd. */
uint64_t status_source_lag_ns(const GatewayStatus *status);
/* The age of the oldest samples that were not sent yet; they may be in the backlog. */
uint64_t status_send_lag_ns(const GatewayStatus *status, const DestinationStatus *send);
/* The age of the newest samples that were sent, refused or left out: small while live intervals are
 * sent, however long the backlog is. */
uint64_t status_send_live_lag_ns(const GatewayStatus *status, const DestinationStatus *send);
/* A sentence that says what helps against the last error; "": there is none. */
const char *status_send_remedy(const DestinationStatus *send);
