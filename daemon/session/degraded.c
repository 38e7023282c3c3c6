/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "session/degraded.h"

#include <string.h>

#include "capture/sampler/sampler.h"
#include "util/log.h"
#include "util/text.h"

/* One row for each reason: its name in JSON, its event in the log, and what it means and what
 * helps, in words for people, with SESSION for the name of the session. */

/* clang-format off */
static const DegradedReason rows[] = {
    { DEGRADED_LOST,              "lost",             "degraded-lost",              "samples are lost",                                            "raise BufferSize= or lower Frequency="                },
    { DEGRADED_THROTTLED,         "throttled",        "degraded-throttled",         "the kernel throttles its events",                             "lower Frequency="                                     },
    { DEGRADED_DISK_FULL,         "diskFull",         "degraded-disk-full",         "the disk is full, and recording goes on in memory",           "make room on it or lower MaxUse="                     },
    { DEGRADED_WRITER_BLOCKED,    "writerBlocked",    "degraded-writer-blocked",    "the store cannot be written, recording goes on in memory",    "see 'journalctl -u profd'; if it has no line about it, the disk does not answer" },
    { DEGRADED_PARTIAL_CPUS,      "partialCpus",      "degraded-partial-cpus",      "some of its CPUs are offline or lack its events",             "bring them online, or name those that count in CPUs=" },
    { DEGRADED_FALLBACK_EVENT,    "fallbackEvent",    "degraded-fallback-event",    "no hardware counters here",                                   "to accept this, set Event=cpu-clock"                  },
    { DEGRADED_SHORT_REACH,       "shortReach",       "degraded-short-reach",       "the full store holds less than a day of it",                  "raise MaxUse= or lower its Frequency="                },
    { DEGRADED_CONFIG,            "config",           "degraded-config",            "the configuration has problems, defaults are used instead", "see 'profd --check-config'"                           },
    { DEGRADED_RATE_LOWERED,      "rateLowered",      "degraded-rate-lowered",      "the kernel allows no higher rate",                            "raise kernel.perf_event_max_sample_rate"              },
    { DEGRADED_SMALL_RINGS,       "smallRings",       "degraded-small-rings",       "its rings are smaller than BufferSize=",                      "raise MaxBufferTotal= or LimitMEMLOCK="               },
    { DEGRADED_NO_KERNEL,         "noKernel",         "degraded-no-kernel",         "it may not sample the kernel",                                "start profd as root, or lower perf_event_paranoid"     },
    { DEGRADED_OWN_PROCESSES,     "ownProcesses",     "degraded-own-processes",     "it may sample only processes of this user",                   "start profd as root, and not within a container"       },
    { DEGRADED_PARTIAL_PROCESSES, "partialProcesses", "degraded-partial-processes", "descriptors do not suffice for all processes",                "raise ulimit -n"                                      },
    { DEGRADED_ABSENT_GROUP,      "absentGroup",      "degraded-absent-group",      "its control group does not exist, and it samples when it does", "start the service, or change Cgroup="               },
    { DEGRADED_SMALL_MEMORY,      "smallMemory",      "degraded-small-memory",      "its control group lets profd keep little in memory",          "raise MemoryMax= and MemoryHigh= of profd.service"    },
    { DEGRADED_MISSING_EVENTS,    "missingEvents",    "degraded-missing-events",    "events that Event= asks for cannot be recorded here",         "correct Event=, 'profd --check-config' shows the mistake" },
    { DEGRADED_FALLBACK_CALL_GRAPH, "fallbackCallGraph", "degraded-fallback-call-graph", "this machine cannot take call graphs as CallGraph= says",     "to accept this, set CallGraph=fp"                     },
    { DEGRADED_STOPPED,           "stopped",          "stopped",                    "it is stopped and records nothing",                           "'profctl start SESSION' starts it"                    },
    { DEGRADED_PAUSED,            "paused",           "paused",                     "it is paused and records nothing",                            "'profctl resume SESSION' resumes it"                  },
    { DEGRADED_FAILED,            "failed",           "failed",                     "it cannot record, and profd tries it again",                  "'profctl show-session SESSION' shows why"             },
    { DEGRADED_LATE_START,        "lateStart",        "degraded-late-start",        "it does not record yet, its events or the store do not answer", "see 'journalctl -u profd'; 'profctl stop SESSION' gives it up" },
    { DEGRADED_NO_CPUS,           "noCpus",           "degraded-no-cpus",           "none of its CPUs is online, and it records nothing",          "bring one online, or name others in CPUs="            },
    { DEGRADED_SCAN_STUCK,        "scanStuck",        "degraded-scan-stuck",        "/proc does not answer, and new programs have no names", "end the process that hangs, or restart profd"    },
    { DEGRADED_NO_BUILD_IDS,      "noBuildIds",       "degraded-no-build-ids",      "profd-elf does not run, and new programs have no build ids",  "see 'journalctl -u profd', or install profd again"    },
    { DEGRADED_SHORT_STACKS,      "shortStacks",      "degraded-short-stacks",      "fewer than 80 % of its stacks reach their outermost frame",   "see 'profctl show-session SESSION' for the reasons"   },
};
/* clang-format on */

const DegradedReason *degraded_reasons(size_t *ret_n) {
    *ret_n = ARRAY_SIZE(rows);
    return rows;
}

void degraded_names(Buffer *out, unsigned set) {
    const char *separator = "";

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        if (set & rows[i].reason) {
            text_printf(out, "%s%s", separator, rows[i].name);
            separator = ", ";
        }
}

void degraded_put_remedy(Buffer *out, const DegradedReason *reason, const char *session) {
    static const char word[] = "SESSION";
    const char *text = reason->remedy, *found = session ? strstr(text, word) : NULL;

    if (!found) {
        text_puts(out, text);
        return;
    }
    buffer_append(out, text, (size_t)(found - text));
    text_puts(out, session);
    text_puts(out, found + strlen(word));
}

void degraded_log(const char *session, unsigned before, unsigned now) {
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        _cleanup_(buffer_done) Buffer remedy = {};

        degraded_put_remedy(&remedy, &rows[i], session);
        text_putc(&remedy, '\0');
        if (now & ~before & rows[i].reason && !buffer_error(&remedy))
            log_struct(LOG_LEVEL_WARNING, 0,
                       LOG_FIELDS({"PROFD_EVENT", rows[i].event}, {"PROFD_SESSION", session},
                                  {"PROFD_DEGRADED", rows[i].name}),
                       "Session '%s' is degraded (%s), %s; %s", session, rows[i].name,
                       rows[i].meaning, (const char *)remedy.data);
        if (before & ~now & rows[i].reason)
            log_struct(LOG_LEVEL_NOTICE, 0,
                       LOG_FIELDS({"PROFD_EVENT", "mended"}, {"PROFD_SESSION", session},
                                  {"PROFD_DEGRADED", rows[i].name}),
                       "Session '%s' is not degraded (%s) any more", session, rows[i].name);
    }
}
