/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A destination of the running gateway, of whichever kind, and the configuration that it borrows.
 */

#include "s3/s3-destination.h"
#include "send/destination.h"

typedef struct GatewaySlot {
    GatewayConfig *config;
    Destination *destination; /* NULL: it is the other kind */
    S3Destination *s3;
} GatewaySlot;

typedef struct GatewaySlotOptions {
    GatewayConfig *config;
    const char *name; /* of the destination */
    const char *state_folder;
    Loop *loop;
    Transport *transport;
    Source *source;
} GatewaySlotOptions;

/* The slot must be zeroed, and stays so on failure. */
int gateway_slot_begin(GatewaySlot *slot, const GatewaySlotOptions *options);
void gateway_slot_end(GatewaySlot *slot);
/* A live interval. */
void gateway_slot_offer(GatewaySlot *slot, Interval *interval);
void gateway_slot_status(const GatewaySlot *slot, DestinationStatus *ret);
