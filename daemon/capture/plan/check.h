/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What of a session's configuration this host would not record. */

#include "capture/plan/cpu-list.h"
#include "config/config.h"
#include "keeper/request/keeper-client.h"

typedef enum CheckResult {
    CHECK_WRONG,   /* it does not record */
    CHECK_UNKNOWN, /* it cannot be checked here, or not now */
    CHECK_REMARK,  /* it records something else, or less */
} CheckResult;

/* `key`: of the session; one sentence. */
typedef void (*CheckReport)(void *userdata, CheckResult result, const char *key,
                            const char *sentence);

typedef struct CheckOptions {
    Keeper *keeper; /* by which events are tried */
    const CpuList *online;
    uint64_t max_hz;             /* 0: no limit */
    uint64_t buffer_total_bytes; /* of all sessions' rings */
    int32_t keeper_pid;          /* > 0: only this process and its children can be recorded */
    bool no_lost, no_cgroup;     /* what the kernel cannot tell */
    bool is_elsewhere;           /* in a process with other rights and limits than the recorder */
    uint64_t used_descriptors;   /* by the events that are open */
    uint64_t until_ns; /* CLOCK_MONOTONIC; what is not tried by then is not checked; 0: no limit */
    const char *root;  /* where /proc is looked for; NULL: here */
    CheckReport report;
    void *userdata;
} CheckOptions;

/* Whether this host has all CPUs of the list, online or not; else *ret_absent is the first that it
 * lacks. */
bool check_has_cpus(const char *list, unsigned *ret_absent);

/* Opens each event for a moment, on one CPU. Failures are those of the check itself. */
int check_session(const CheckOptions *options, const SessionConfig *config);
