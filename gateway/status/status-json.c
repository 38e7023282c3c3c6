/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "status/status-value.h"
#include "util/clock.h"
#include "util/fields.h"
#include "util/file.h"

/*
 * The state as JSON, for `profctl gateway status`, in a file of the runtime folder. The file is
 * written anew and renamed, so that a reader never sees half of it. Times are in microseconds, and
 * texts from outside are escaped.
 */

static void status_json_us(Fields *f, const char *name, uint64_t ns) {
    fields_u64(f, name, ns / NS_PER_US);
}

/* A moment, or null where there was none. */
static void status_json_moment(Fields *f, const char *name, uint64_t ns) {
    if (ns > 0)
        status_json_us(f, name, ns);
    else
        fields_null(f, name);
}

static void status_json_source(Fields *f, const SourceStatus *source) {
    fields_begin_object(f, "source");
    fields_bool(f, "connected", source->connected);
    fields_bool(f, "hangs", source->hangs);
    fields_str(f, "problem", source->problem);
    status_json_moment(f, "untilUsec", source->until_ns);
    fields_u64(f, "intervals", source->intervals);
    fields_u64(f, "samples", source->samples);
    fields_u64(f, "lost", source->lost);
    fields_u64(f, "gaps", source->gaps);
    status_json_us(f, "missingUsec", source->missing_ns);
    fields_u64(f, "queuedWindows", source->queued_windows);
    fields_end_object(f);
}

static void status_json_counters(Fields *f, const DestinationStatus *send) {
    fields_u64(f, "sentIntervals", send->sent_intervals);
    fields_u64(f, "sentRequests", send->sent_requests);
    fields_u64(f, "sentBytes", send->sent_bytes);
    fields_u64(f, "sentSamples", send->sent_samples);
    fields_u64(f, "refusedIntervals", send->refused_intervals);
    fields_u64(f, "refusedSamples", send->refused_samples);
    fields_u64(f, "droppedSamples", send->dropped_samples);
    fields_u64(f, "otherSamples", send->other_samples);
    fields_u64(f, "thinnedIntervals", send->thinned_intervals);
    status_json_us(f, "expiredUsec", send->expired_ns);
    status_json_us(f, "missingUsec", send->missing_ns);
    status_json_us(f, "deletedUsec", send->deleted_ns);
    fields_u64(f, "repeatedRequests", send->repeated_requests);
    fields_u64(f, "retries", send->retries);
}

static void status_json_send(Fields *f, const GatewayStatus *status,
                             const DestinationStatus *send) {
    fields_str(f, "name", send->name);
    fields_str(f, "type", send->type);
    fields_bool(f, "up", status_send_is_up(send));
    status_json_us(f, "lagUsec", status_send_lag_ns(status, send));
    status_json_us(f, "liveLagUsec", status_send_live_lag_ns(status, send));
    status_json_moment(f, "liveUntilUsec", send->live_until_ns);
    status_json_us(f, "backlogUsec", send->backlog_ns);
    status_json_moment(f, "backlogSinceUsec", send->backlog_ns > 0 ? send->backlog_since_ns : 0);
    fields_u64(f, "ranges", send->ranges);
    status_json_moment(f, "lastSuccessUsec", send->last_success_ns);
    status_json_counters(f, send);
    status_json_moment(f, "retryUsec", send->is_waiting ? send->retry_ns : 0);
    fields_i64(f, "lastHttpStatus", send->last_http_status);
    fields_str(f, "lastError", send->last_error);
    status_json_moment(f, "lastErrorUsec", send->last_error_ns);
    fields_str(f, "remedy", status_send_remedy(send));
}

void status_json(const GatewayStatus *status, Buffer *out) {
    Fields f = fields_to(out, FIELDS_JSON);

    fields_begin_object(&f, NULL);
    fields_str(&f, "version", PROFD_VERSION);
    fields_u64(&f, "pid", (uint64_t)getpid());
    fields_str(&f, "host", status->host ?: "");
    status_json_us(&f, "sinceUsec", status->start_ns);
    status_json_us(&f, "nowUsec", status->now_ns);
    status_json_us(&f, "intervalUsec", status->interval_ns);
    status_json_us(&f, "cpuUsec", status->cpu_ns);
    fields_u64(&f, "residentBytes", status->resident_bytes);
    fields_u64(&f, "anonymousBytes", status->anonymous_bytes);
    fields_u64(&f, "configProblems", status->config_problems);
    fields_bool(&f, "outdated", status->is_outdated);
    status_json_source(&f, &status->source);
    for (size_t i = fields_begin_list(&f, "destinations"); fields_next(&f, i, status->n_sends); i++)
        status_json_send(&f, status, &status->sends[i]);
    fields_u64(&f, "scrapes", status->scrapes);
    fields_u64(&f, "refusedClients", status->refused_clients);
    fields_end_object(&f);
    buffer_append(out, "\n", 1);
}

static int status_write_text(const Buffer *text, int folder) {
    static const char name[] = STATUS_FILE ".new";
    _cleanup_close_ int fd =
        openat(folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
    int r = fd < 0 ? -errno : fchmod(fd, 0644) < 0 ? -errno : 0;

    if (r == 0)
        r = file_write_all(fd, text->data, text->size);
    if (r == 0 && renameat(folder, name, folder, STATUS_FILE) < 0)
        r = -errno;
    return r;
}

int status_write(const GatewayStatus *status, const char *folder) {
    _cleanup_(buffer_done) Buffer text = {};
    _cleanup_close_ int fd = -1;

    status_json(status, &text);
    if (buffer_error(&text))
        return buffer_error(&text);
    fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? -errno : status_write_text(&text, fd);
}

void status_remove(const char *folder) {
    _cleanup_close_ int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd >= 0)
        (void)unlinkat(fd, STATUS_FILE, 0);
}
