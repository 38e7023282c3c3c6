/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "s3/s3-step.h"

#include <stdio.h>
#include <string.h>

#include "send/file-folder.h"
#include "transport/retry.h"
#include "util/clock.h"

/*
 * One thing at a time: clean what an earlier upload left, get the next item from profd, upload it.
 * s3_run_step() decides which, and runs whenever one of them has ended or a time has come.
 */

bool s3_run_sends_snapshots(const SendConfig *config) {
    return strcmp(config->content, "snapshots") == 0;
}

bool s3_run_is_folder(const SendConfig *config) {
    return config->url[0] == '/';
}

/* How long the backlog still waits for the limit of bytes. */
static uint64_t s3_run_pause_left(const S3Run *self) {
    uint64_t now_ns = clock_monotonic_ns();

    return self->pause_ns > now_ns ? self->pause_ns - now_ns : 0;
}

static int s3_run_start_task(S3Run *self, void (*run)(void *userdata, const atomic_bool *stop),
                             void (*done)(void *userdata)) {
    self->profd.problem[0] = '\0';
    return s3_task_start(
        &(S3TaskOptions){.loop = self->loop, .run = run, .done = done, .userdata = self},
        &self->task);
}

static void s3_run_on_uploaded(void *userdata, const S3UploadResult *result) {
    S3Run *self = userdata;

    self->upload = NULL;
    if (result->verdict == S3_DONE) {
        s3_run_succeed(self);
    } else if (result->verdict == S3_REFUSED) {
        s3_run_refuse(self, result->sentence, result->status);
    } else {
        bool is_folder = s3_run_is_folder(self->config);

        /* The store may accept the other objects, and smaller ones find space. */
        if (result->status > 0 || is_folder)
            s3_run_skip(self);
        s3_item_done(&self->item);
        if (is_folder)
            s3_run_fail_with(self, result->sentence, result->status);
        else
            s3_run_fail(self, result);
    }
}

static void s3_run_on_begin(void *userdata, const char *upload_id) {
    S3Run *self = userdata;

    (void)snprintf(self->state.upload_id, sizeof(self->state.upload_id), "%s", upload_id);
    s3_run_save(self);
}

/* The state on the disk names the object: a gateway that is killed knows what to look for. */
static void s3_run_on_noted(void *userdata, int error) {
    S3Run *self = userdata;
    char sentence[S3_SENTENCE_MAX];
    int r = error;

    self->is_noting = false;
    s3_run_on_saved(self, error);
    if (r == 0)
        r = s3_upload_start(&(S3UploadOptions){.target = &self->target,
                                               .object = &self->item.object,
                                               .key = self->item.key,
                                               .on_begin = s3_run_on_begin,
                                               .done = s3_run_on_uploaded,
                                               .userdata = self},
                            &self->upload);
    if (r == 0)
        return;
    s3_item_done(&self->item);
    if (error < 0)
        (void)snprintf(sentence, sizeof(sentence),
                       "The state of the destination in '%.128s' cannot be written: %s.",
                       self->profd.folder, strerror(-error));
    else
        (void)snprintf(sentence, sizeof(sentence), "An upload cannot begin: %s.", strerror(-r));
    s3_run_fail_with(self, sentence, SEND_STATUS_LOCAL);
}

static void s3_run_on_fetched(void *userdata) {
    S3Run *self = userdata;
    S3Item *item = &self->item;
    int r;

    self->task = NULL;
    if (item->error < 0) {
        s3_run_lack(self);
        return;
    }
    s3_run_forget_upload(self);
    memcpy(self->state.key, item->key, sizeof(self->state.key));
    self->state.is_multipart = item->object.n_parts > 1 && !s3_run_is_folder(self->config);
    self->is_noting = true;
    r = s3_run_save_with(self, s3_run_on_noted);
    if (r < 0)
        s3_run_on_noted(self, r);
}

static void s3_run_run_fetch(void *userdata, const atomic_bool *stop) {
    S3Run *self = userdata;

    self->profd.stop = stop;
    /* A gateway that was killed may have left a part of it. */
    if (s3_run_is_folder(self->config) && self->state.key[0])
        file_folder_forget(self->config->url, self->state.key);
    s3_item_fetch(&self->item, &self->profd);
}

static int s3_run_fetch(S3Run *self) {
    const char *template = self->config->key_template;
    int r = s3_item_name(&self->item, template[0] ? template : S3_KEY_DEFAULT, self->host,
                         self->profd.session);

    if (r < 0) {
        s3_run_refuse(self, "The key of an object would be too long: shorten KeyTemplate=.",
                      SEND_STATUS_LOST);
        return 0;
    }
    return s3_run_start_task(self, s3_run_run_fetch, s3_run_on_fetched);
}

/* The newest window goes first and at once, those before it from the oldest on. */
static int s3_run_next_window(S3Run *self, uint64_t now_ns) {
    const RangeList *unsent = &self->state.unsent;
    uint64_t interval = self->config->object_interval_ns, until_ns, pause_ns;

    if (s3_schedule_take(&self->state, self->config, self->spread_ns, now_ns))
        s3_run_save(self);
    s3_run_note_losses(self);
    until_ns = self->state.until_ns;
    self->newest_ns = MIN(self->newest_ns, until_ns);
    pause_ns = s3_schedule_next(until_ns, interval, self->spread_ns).due_ns;
    pause_ns = pause_ns > now_ns ? pause_ns - now_ns : 0;
    if (unsent->n > 0) {
        S3Slot slot = s3_schedule_pick(unsent, until_ns, interval, self->failed_ns);
        uint64_t wait_ns = slot.until_ns == until_ns ? 0 : s3_run_pause_left(self);

        if (wait_ns == 0) {
            self->item.slot = slot;
            return s3_run_fetch(self);
        }
        pause_ns = MIN(pause_ns, wait_ns);
    }
    /* The clock may be set meanwhile. */
    s3_run_wake(self, MIN(pause_ns, self->gateway->interval_ns));
    return 0;
}

static void s3_run_run_list(void *userdata, const atomic_bool *stop) {
    S3Run *self = userdata;

    self->profd.stop = stop;
    self->list_error = s3_pending_fetch(&self->pending, &self->profd, &self->state, &self->listed);
}

static void s3_run_on_listed(void *userdata) {
    S3Run *self = userdata;

    self->task = NULL;
    self->next_list_ns = clock_monotonic_ns() + self->gateway->interval_ns;
    if (self->list_error < 0) {
        s3_run_fail_with(self, self->profd.problem, self->profd.problem_status);
        return;
    }
    s3_pending_done(&self->pending);
    self->pending = self->listed;
    self->listed = (S3Pending){};
    s3_run_wake(self, 0);
}

static int s3_run_next_snapshot(S3Run *self, uint64_t now_ns) {
    uint64_t wait_ns = s3_run_pause_left(self);

    if (wait_ns > 0) {
        s3_run_wake(self, wait_ns);
        return 0;
    }
    if (self->pending.next < self->pending.n) {
        self->item.is_snapshot = true;
        self->item.snapshot = self->pending.items[self->pending.next];
        self->item.file = self->item.snapshot.next_file;
        return s3_run_fetch(self);
    }
    /* A full list may have left some out. */
    if (now_ns < self->next_list_ns && self->pending.n < S3_PENDING_MAX) {
        s3_run_wake(self, self->next_list_ns - now_ns);
        return 0;
    }
    return s3_run_start_task(self, s3_run_run_list, s3_run_on_listed);
}

static void s3_run_on_cleaned(void *userdata, const S3UploadResult *result) {
    S3Run *self = userdata;

    self->cleanup = NULL;
    if (!s3_cleanup_is_over(result, &self->cleanups)) {
        s3_run_fail(self, result);
        return;
    }
    if (result->verdict != S3_DONE)
        log_struct(LOG_LEVEL_WARNING, 0, LOG_FIELDS(s3_run_field(self)),
                   "Destination '%s' may have left parts of '%s' with the store",
                   self->config->name, self->state.key);
    self->cleanups = 0;
    s3_run_forget_upload(self);
    s3_run_save(self);
    s3_run_wake(self, 0);
}

static int s3_run_clean(S3Run *self) {
    return s3_cleanup_start(&(S3CleanupOptions){.target = &self->target,
                                                .key = self->state.key,
                                                .upload_id = self->state.upload_id,
                                                .done = s3_run_on_cleaned,
                                                .userdata = self},
                            &self->cleanup);
}

int s3_run_step(void *userdata) {
    S3Run *self = userdata;
    uint64_t now_ns = clock_monotonic_ns();
    int r;

    if (self->task || self->upload || self->cleanup || self->is_noting)
        return 0;
    if (now_ns < self->retry_ns) {
        s3_run_wake(self, self->retry_ns - now_ns);
        return 0;
    }
    if (self->state.key[0] && self->state.is_multipart)
        r = s3_run_clean(self);
    else if (s3_run_sends_snapshots(self->config))
        r = s3_run_next_snapshot(self, now_ns);
    else
        r = s3_run_next_window(self, clock_ns(CLOCK_REALTIME));
    if (r < 0) {
        s3_item_done(&self->item);
        s3_run_fail_with(self, strerror(-r), SEND_STATUS_LOCAL);
    }
    return 0;
}
