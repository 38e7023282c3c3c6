/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A destination at work, and what follows from what has happened to it. The struct is open for
 * s3-step.c, which begins things, and s3-destination.c, which makes it.
 */

#include "s3/s3-cleanup.h"
#include "s3/s3-item.h"
#include "send/disk-worker.h"
#include "send/loss-note.h"
#include "util/log.h"

typedef struct S3Run {
    const SendConfig *config;     /* borrowed */
    const GatewayConfig *gateway; /* likewise */
    Loop *loop;
    S3Target target;
    S3Profd profd;
    char host[GATEWAY_NAME_MAX * 4];
    uint64_t spread_ns;
    DiskWorker *worker; /* writes the state */
    S3State state;
    bool is_noting; /* an upload begins when the state is on the disk */
    LoopSource *timer;

    /* One of these, or none. */
    S3Task *task;
    S3Upload *upload;
    S3Cleanup *cleanup;

    S3Item item;
    uint64_t failed_ns;    /* windows up to it that wait failed, and come behind the others */
    S3Pending pending;     /* of snapshots */
    S3Pending listed;      /* the task's while it runs, like the state's list */
    uint64_t next_list_ns; /* CLOCK_MONOTONIC */
    int list_error;
    unsigned cleanups; /* failed ones in a row */

    unsigned failures;  /* in a row */
    uint64_t retry_ns;  /* nothing begins before it; CLOCK_MONOTONIC */
    uint64_t pause_ns;  /* nothing of the backlog does; likewise */
    uint64_t newest_ns; /* the end of the newest window that needs no upload any more */
    char last_error[S3_SENTENCE_MAX];
    uint64_t last_error_ns;
    long error_status; /* of last_error, see DestinationStatus */
    long last_status;  /* of HTTP; 0: no answer */
    bool is_late;      /* something was noted since the last object */
    LossNote loss;
    LogRate error_rate, back_rate, lost_rate, state_rate;
} S3Run;

/* All that end something wake the destination again. */
/* The state is written soon, after what is being written; failures are logged. */
void s3_run_save(S3Run *self);
/* The same, and calls `done` after that, unless an error is returned. */
int s3_run_save_with(S3Run *self, void (*done)(void *userdata, int error));
void s3_run_on_saved(void *userdata, int error);
void s3_run_wake(S3Run *self, uint64_t delay_ns);
/* All log entries of the destination have this field. */
LogField s3_run_field(const S3Run *self);
/* The last error, for the status; `status` as in DestinationStatus. */
void s3_run_keep_error(S3Run *self, const char *sentence, long status);
/* The same, and logs that the destination waits. */
void s3_run_note(void *userdata, const char *sentence, long status);
void s3_run_fail(S3Run *self, const S3UploadResult *result);
void s3_run_fail_with(S3Run *self, const char *sentence, long status);
/* Logs what became too old or was deleted, if anything did. */
void s3_run_note_losses(S3Run *self);
LossCounts s3_run_losses(const S3Run *self);
/* The item under way was uploaded; is never accepted; was not given by profd. */
void s3_run_succeed(S3Run *self);
void s3_run_refuse(S3Run *self, const char *sentence, long status);
void s3_run_lack(S3Run *self);
/* The item under way failed and comes again behind the others, so that it does not hold them up. */
void s3_run_skip(S3Run *self);
/* Nothing of an upload is left with the store. */
void s3_run_forget_upload(S3Run *self);
