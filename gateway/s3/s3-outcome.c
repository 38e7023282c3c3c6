/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "s3/s3-outcome.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "transport/retry.h"
#include "send/state-file.h"
#include "util/clock.h"

/*
 * What a destination does after something has ended: it counts, writes its state and decides when
 * to go on. Any failure is a wait, after which the item is got from profd again: while a store is
 * away, the gateway holds nothing of it.
 */

/* profd is back sooner than a store. */
#define S3_LOCAL_DELAY_NS (10 * NS_PER_SECOND)

LogField s3_run_field(const S3Run *self) {
    return (LogField){"PROFD_DESTINATION", self->config->name};
}

void s3_run_on_saved(void *userdata, int error) {
    S3Run *self = userdata;

    if (error < 0)
        (void)log_limited_struct(&self->state_rate, LOG_LEVEL_ERROR, error,
                                 LOG_FIELDS(s3_run_field(self)),
                                 "Failed to write the state of destination '%s' in '%s': %m",
                                 self->config->name, self->profd.folder);
}

int s3_run_save_with(S3Run *self, void (*done)(void *userdata, int error)) {
    S3Counters *counters = &self->state.counters;
    DiskSave save = {
        .folder = self->profd.folder, .name = self->config->name, .suffix = S3_STATE_SUFFIX};
    DiskJob *job;
    int r;

    counters->requests += self->target.requests;
    counters->retries += self->target.retries;
    counters->bytes += self->target.sent_bytes;
    self->target.requests = self->target.retries = self->target.sent_bytes = 0;
    r = s3_state_print(&self->state, &save.text);
    if (r == 0)
        return disk_worker_save(self->worker, &save, done, self, &job);
    buffer_done(&save.text);
    return r;
}

void s3_run_save(S3Run *self) {
    int r = s3_run_save_with(self, s3_run_on_saved);

    if (r < 0)
        s3_run_on_saved(self, r);
}

void s3_run_keep_error(S3Run *self, const char *sentence, long status) {
    (void)snprintf(self->last_error, sizeof(self->last_error), "%s", sentence);
    self->last_error_ns = clock_ns(CLOCK_REALTIME);
    self->error_status = status;
    if (status >= 0)
        self->last_status = status;
}

void s3_run_note(void *userdata, const char *sentence, long status) {
    S3Run *self = userdata;

    self->is_late = true;
    s3_run_keep_error(self, sentence, status);
    (void)log_limited_struct(
        &self->error_rate, LOG_LEVEL_WARNING, 0,
        LOG_FIELDS({"PROFD_EVENT", "gateway-destination-waits"}, s3_run_field(self)),
        "Destination '%s' sends later: %s", self->config->name, sentence);
}

/* Logs the return if something was noted since the last object. */
static void s3_run_note_back(S3Run *self) {
    if (self->is_late)
        (void)log_limited_struct(
            &self->back_rate, LOG_LEVEL_INFO, 0,
            LOG_FIELDS({"PROFD_EVENT", "gateway-destination-back"}, s3_run_field(self)),
            "Destination '%s' gets recordings again", self->config->name);
    self->is_late = false;
}

void s3_run_wake(S3Run *self, uint64_t delay_ns) {
    if (loop_trigger_after(self->timer, delay_ns) < 0)
        log_struct(LOG_LEVEL_ERROR, -ENOMEM, LOG_FIELDS(s3_run_field(self)),
                   "Failed to set the timer of destination '%s': %m", self->config->name);
}

static void s3_run_back_off(S3Run *self, SendVerdict verdict, uint64_t retry_after_ns,
                            uint64_t limit_ns) {
    uint64_t random = 0, delay;

    (void)!getrandom(&random, sizeof(random), GRND_NONBLOCK);
    self->failures++;
    delay =
        MIN(retry_delay_ns(self->failures, verdict, retry_after_ns, limit_ns, random), limit_ns);
    self->retry_ns = clock_monotonic_ns() + delay;
    s3_run_wake(self, delay);
}

void s3_run_fail(S3Run *self, const S3UploadResult *result) {
    /* A call has noted what the store said; this is what we make of it. */
    if (strcmp(self->last_error, result->sentence) != 0)
        s3_run_note(self, result->sentence, result->status);
    s3_run_back_off(self, result->verdict == S3_WAIT ? SEND_UNAUTHORISED : SEND_AGAIN,
                    result->retry_after_ns, UINT64_MAX);
}

/* Something on this host, which nobody else waits for. */
void s3_run_fail_with(S3Run *self, const char *sentence, long status) {
    s3_run_note(self, sentence, status);
    s3_run_back_off(self, SEND_AGAIN, 0, S3_LOCAL_DELAY_NS);
}

void s3_run_forget_upload(S3Run *self) {
    self->state.key[0] = self->state.upload_id[0] = '\0';
    self->state.is_multipart = false;
}

static void s3_run_finish_snapshot(S3Run *self) {
    const S3Snapshot *snapshot = &self->item.snapshot;
    int r;

    self->pending.next++;
    r = s3_state_add_snapshot(&self->state, snapshot->name, snapshot->created_us);
    if (r < 0)
        log_struct(LOG_LEVEL_WARNING, r, LOG_FIELDS(s3_run_field(self)),
                   "Failed to note snapshot '%s', it may be uploaded again: %m", snapshot->name);
    self->state.until_ns = MAX(self->state.until_ns, snapshot->created_us * NS_PER_US);
}

/* The item needs no upload any more, for whatever reason. */
static void s3_run_finish(S3Run *self) {
    S3Item *item = &self->item;

    /* The next step aborts a refused upload and removes its parts. */
    if (!self->state.is_multipart)
        s3_run_forget_upload(self);
    if (!item->is_snapshot) {
        Range range = {item->slot.since_ns, item->slot.until_ns};

        self->state.counters.expired_ns += range_list_remove(&self->state.unsent, range);
        self->newest_ns = MAX(self->newest_ns, range.until_ns);
    } else if (item->error == 0 && item->file + 1 < item->snapshot.n_files)
        self->pending.items[self->pending.next].next_file = item->file + 1;
    else
        s3_run_finish_snapshot(self);
    s3_item_done(item);
    s3_run_save(self);
    s3_run_wake(self, 0);
}

/* How long an object of this size takes at the limit of bytes. */
static uint64_t s3_run_pause(const S3Run *self) {
    uint64_t rate = self->config->max_bytes_per_sec, size = self->item.object.size;

    return rate == 0 ? 0 : MIN(size / rate, UINT64_C(3600)) * NS_PER_SECOND;
}

void s3_run_succeed(S3Run *self) {
    S3Counters *counters = &self->state.counters;

    counters->objects++;
    counters->samples += self->item.samples;
    counters->missing_ns += self->item.missing_ns;
    counters->deleted_ns += self->item.deleted_ns;
    counters->last_success_ns = clock_ns(CLOCK_REALTIME);
    s3_run_note_back(self);
    self->failures = 0;
    self->last_status = 200;
    self->pause_ns = clock_monotonic_ns() + s3_run_pause(self);
    s3_run_forget_upload(self);
    s3_run_finish(self);
}

static void s3_run_note_loss(S3Run *self, const char *sentence, long status) {
    s3_run_keep_error(self, sentence, status);
    (void)log_limited_struct(
        &self->lost_rate, LOG_LEVEL_WARNING, 0,
        LOG_FIELDS({"PROFD_EVENT", "gateway-profiles-lost"}, s3_run_field(self)),
        "Destination '%s' does not get a recording: %s", self->config->name, sentence);
}

LossCounts s3_run_losses(const S3Run *self) {
    const S3Counters *counters = &self->state.counters;

    return (LossCounts){.expired_ns = counters->expired_ns, .deleted_ns = counters->deleted_ns};
}

void s3_run_note_losses(S3Run *self) {
    const LossCounts counts = s3_run_losses(self);
    char sentence[LOSS_SENTENCE_MAX];

    if (loss_note_take(&self->loss, &counts, self->config->max_age_ns > 0, clock_monotonic_ns(),
                       sentence))
        log_struct(LOG_LEVEL_WARNING, 0,
                   LOG_FIELDS({"PROFD_EVENT", "gateway-profiles-lost"}, s3_run_field(self)),
                   "Destination '%s' lost recordings: %s", self->config->name, sentence);
}

void s3_run_refuse(S3Run *self, const char *sentence, long status) {
    self->state.counters.refused++;
    self->state.counters.refused_samples += self->item.samples;
    s3_run_note_loss(self, sentence, status);
    self->item.error = -EFBIG; /* without it, the other files of a folder are of no use */
    s3_run_finish(self);
}

void s3_run_skip(S3Run *self) {
    if (self->item.is_snapshot)
        s3_pending_skip(&self->pending);
    else if (self->item.slot.until_ns != self->state.until_ns)
        self->failed_ns = self->item.slot.until_ns;
}

/* A window that profd does not give. False: it may have been recorded, and no other counter says
 * so. */
static bool s3_run_miss(S3Run *self) {
    const S3Slot *slot = &self->item.slot;
    uint64_t length_ns = slot->until_ns - slot->since_ns;
    S3Lack lack = self->item.error == -ENODATA ? self->profd.lack : S3_LACK_UNKNOWN;

    self->state.counters.missing_ns += length_ns;
    if (lack == S3_LACK_DELETED)
        self->state.counters.deleted_ns += length_ns;
    return lack != S3_LACK_UNKNOWN;
}

void s3_run_lack(S3Run *self) {
    S3Item *item = &self->item;
    const S3Profd *profd = &self->profd;

    if (profd->problem_status != SEND_STATUS_LOST) {
        if (item->error != -ENOTCONN)
            s3_run_skip(self);
        s3_item_done(item);
        s3_run_fail_with(self, profd->problem, profd->problem_status);
    } else if (item->error == -EFBIG || (item->error == -EACCES && item->is_snapshot)) {
        s3_run_refuse(self, profd->problem, SEND_STATUS_LOST);
    } else {
        bool is_counted = !item->is_snapshot && s3_run_miss(self);

        if (!is_counted)
            s3_run_note_loss(self, profd->problem, SEND_STATUS_LOST);
        s3_run_finish(self);
    }
}
