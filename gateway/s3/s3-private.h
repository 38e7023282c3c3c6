/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The inside of a destination, for s3-destination.c, s3-step.c and s3-outcome.c. */

#include "s3/s3-cleanup.h"
#include "s3/s3-destination.h"
#include "s3/s3-item.h"
#include "send/retry.h"
#include "util/log.h"

struct S3Destination {
    S3DestinationOptions options;
    S3Target target;
    S3Profd profd;
    char host[GATEWAY_NAME_MAX * 4];
    uint64_t spread_ns;
    char *state_path;
    S3State state;
    int save_error; /* of the last time */
    LoopSource *timer;

    /* One of these, or none. */
    S3Task *task;
    S3Upload *upload;
    S3Cleanup *cleanup;

    S3Item item;
    S3Pending pending; /* of snapshots; the task's while it runs, like the state's list */
    size_t next_file;  /* of the snapshot that is next */
    uint64_t next_list_ns;
    int list_error;
    unsigned cleanups; /* failed ones in a row */

    unsigned failures; /* in a row */
    uint64_t retry_ns; /* nothing begins before it */
    uint64_t pause_ns; /* after this object, for the limit of bytes */
    char last_error[S3_SENTENCE_MAX];
    uint64_t last_error_ns;
    long last_status;
    LogRate error_rate, state_rate;
};

/* In s3-outcome.c: what follows from what has happened. Each wakes the destination again. */
void s3_destination_save(S3Destination *self);
void s3_destination_wake(S3Destination *self, uint64_t delay_ns);
/* The last error, for status and log; `status` 0: it is not from an answer. */
void s3_destination_note(void *userdata, const char *sentence, long status);
void s3_destination_fail(S3Destination *self, const S3UploadResult *result);
void s3_destination_fail_with(S3Destination *self, const char *sentence);
/* The item under way was uploaded; is never accepted; was not given by profd. */
void s3_destination_succeed(S3Destination *self);
void s3_destination_refuse(S3Destination *self, const char *sentence, long status);
void s3_destination_lack(S3Destination *self);
/* Nothing of an upload is left with the store. */
void s3_destination_forget_upload(S3Destination *self);

/* In s3-step.c: */
/* Begins what is next; the callback of the timer. */
int s3_destination_step(void *userdata);
bool s3_destination_sends_snapshots(const SendConfig *config);
