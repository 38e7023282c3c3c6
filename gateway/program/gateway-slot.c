/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "program/gateway-slot.h"

#include <string.h>

/*
 * A destination of either kind: one that gets intervals, or an object store or folder that gets
 * recordings and asks profd for them by itself. It keeps the configuration that it borrows.
 */

int gateway_slot_begin(GatewaySlot *slot, const GatewaySlotOptions *options) {
    const SendConfig *send = gateway_config_send(options->config, options->name);
    int r;

    if (gateway_send_keeps_recordings(send))
        r = s3_destination_new(&(S3DestinationOptions){.config = send,
                                                       .gateway = options->config,
                                                       .state_folder = options->state_folder,
                                                       .loop = options->loop,
                                                       .transport = options->transport},
                               &slot->s3);
    else
        r = destination_new(&(DestinationOptions){.config = send,
                                                  .gateway = options->config,
                                                  .state_folder = options->state_folder,
                                                  .loop = options->loop,
                                                  .transport = options->transport,
                                                  .source = options->source},
                            &slot->destination);
    if (r == 0)
        slot->config = gateway_config_ref(options->config);
    return r;
}

void gateway_slot_end(GatewaySlot *slot) {
    bool has_ended = s3_destination_end(slot->s3);

    slot->s3 = NULL;
    slot->destination = destination_free(slot->destination);
    /* A task that hangs still reads the configuration. */
    slot->config = has_ended ? gateway_config_free(slot->config) : NULL;
}

void gateway_slot_offer(GatewaySlot *slot, Interval *interval) {
    if (slot->destination)
        destination_offer(slot->destination, interval);
}

void gateway_slot_status(const GatewaySlot *slot, DestinationStatus *ret) {
    if (slot->s3)
        s3_destination_status(slot->s3, ret);
    else
        destination_status(slot->destination, ret);
}
