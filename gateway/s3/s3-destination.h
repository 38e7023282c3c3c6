/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A destination that keeps raw recordings in a bucket or a folder: one object for each window of
 * object_interval_ns, or one for each snapshot of profd. The newest window goes first, those that
 * wait follow from the oldest on; what the store did not take stays with profd and is asked for
 * again. The same window has the same key, so nothing is there twice.
 */

#include "config/gateway-config.h"
#include "loop/loop.h"
#include "send/destination.h"
#include "transport/transport.h"

typedef struct S3Destination S3Destination;

typedef struct S3DestinationOptions {
    const SendConfig *config;     /* borrowed, like all others */
    const GatewayConfig *gateway; /* its socket, session and host */
    const char *state_folder;     /* also for an object that is larger than a part */
    Loop *loop;
    Transport *transport;
} S3DestinationOptions;

/* -EINVAL with a sentence in *ret_problem, which is static: what its keys say together is wrong. */
int s3_destination_check(const SendConfig *config, const char **ret_problem);
int s3_destination_new(const S3DestinationOptions *options, S3Destination **ret);
/* False: a task of it hangs, and everything that its options have must stay allocated. */
bool s3_destination_end(S3Destination *destination);
S3Destination *s3_destination_free(S3Destination *destination);
DEFINE_CLEANUP(S3Destination *, s3_destination_free);
void s3_destination_status(const S3Destination *destination, DestinationStatus *ret);
