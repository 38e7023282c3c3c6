/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "s3/s3-private.h"
#include "util/clock.h"

/*
 * One thing at a time: clean what an earlier upload left, get the next item from profd, upload it.
 * s3_destination_step() decides which, and runs whenever one of them has ended or a time has come.
 */

/* A multipart upload that may not be looked for must not stop all others. */
enum { S3_CLEANUPS_MAX = 5 };

bool s3_destination_sends_snapshots(const SendConfig *config) {
    return strcmp(config->content, "snapshots") == 0;
}

static int s3_destination_start_task(S3Destination *self,
                                     void (*run)(void *userdata, const atomic_bool *stop),
                                     void (*done)(void *userdata)) {
    self->profd.problem[0] = '\0';
    return s3_task_start(
        &(S3TaskOptions){.loop = self->options.loop, .run = run, .done = done, .userdata = self},
        &self->task);
}

static void s3_destination_on_uploaded(void *userdata, const S3UploadResult *result) {
    S3Destination *self = userdata;

    self->upload = NULL;
    if (result->verdict == S3_DONE) {
        s3_destination_succeed(self);
    } else if (result->verdict == S3_REFUSED) {
        s3_destination_refuse(self, result->sentence, result->status);
    } else {
        s3_item_done(&self->item);
        s3_destination_fail(self, result);
    }
}

/* Noted before the store is asked, so that a gateway that is killed knows what to look for. */
static int s3_destination_on_begin(void *userdata, const char *upload_id) {
    S3Destination *self = userdata;

    self->state.is_multipart = true;
    (void)snprintf(self->state.upload_id, sizeof(self->state.upload_id), "%s", upload_id);
    s3_destination_save(self);
    return self->save_error;
}

static int s3_destination_upload(S3Destination *self) {
    S3Item *item = &self->item;

    s3_destination_forget_upload(self);
    memcpy(self->state.key, item->key, sizeof(self->state.key));
    s3_destination_save(self);
    if (self->save_error < 0)
        return self->save_error;
    return s3_upload_start(&(S3UploadOptions){.target = &self->target,
                                              .object = &item->object,
                                              .key = item->key,
                                              .on_begin = s3_destination_on_begin,
                                              .done = s3_destination_on_uploaded,
                                              .userdata = self},
                           &self->upload);
}

static void s3_destination_on_fetched(void *userdata) {
    S3Destination *self = userdata;
    int r;

    self->task = NULL;
    if (self->item.error < 0) {
        s3_destination_lack(self);
        return;
    }
    r = s3_destination_upload(self);
    if (r == 0)
        return;
    s3_item_done(&self->item);
    s3_destination_fail_with(self, r == self->save_error
                                       ? "The state of the destination cannot be written."
                                       : "An upload cannot begin for lack of memory.");
}

static void s3_destination_run_fetch(void *userdata, const atomic_bool *stop) {
    S3Destination *self = userdata;

    self->profd.stop = stop;
    s3_item_fetch(&self->item, &self->profd);
}

static int s3_destination_fetch(S3Destination *self) {
    const char *template = self->options.config->key_template;
    int r = s3_item_name(&self->item, template[0] ? template : S3_KEY_DEFAULT, self->host,
                         self->profd.session);

    if (r < 0) {
        s3_destination_refuse(self, "The key of an object would be too long.", 0);
        return 0;
    }
    return s3_destination_start_task(self, s3_destination_run_fetch, s3_destination_on_fetched);
}

/* Windows that are older than the limit are given up at once. */
static void s3_destination_expire(S3Destination *self, uint64_t now_ns) {
    uint64_t age = self->options.config->max_age_ns, oldest;

    if (age == 0 || now_ns < age)
        return;
    oldest = s3_schedule_first(now_ns - age, self->options.config->object_interval_ns);
    if (self->state.until_ns >= oldest)
        return;
    self->state.counters.expired_ns += oldest - self->state.until_ns;
    self->state.until_ns = oldest;
    s3_destination_save(self);
}

static int s3_destination_next_window(S3Destination *self, uint64_t now_ns) {
    S3Slot slot;

    s3_destination_expire(self, now_ns);
    slot = s3_schedule_next(self->state.until_ns, self->options.config->object_interval_ns,
                            self->spread_ns);
    if (now_ns < slot.due_ns) {
        s3_destination_wake(self, slot.due_ns - now_ns);
        return 0;
    }
    self->item.slot = slot;
    return s3_destination_fetch(self);
}

static void s3_destination_run_list(void *userdata, const atomic_bool *stop) {
    S3Destination *self = userdata;

    self->profd.stop = stop;
    self->list_error = s3_pending_fetch(&self->pending, &self->profd, &self->state);
}

static void s3_destination_on_listed(void *userdata) {
    S3Destination *self = userdata;

    self->task = NULL;
    self->next_list_ns = clock_ns(CLOCK_REALTIME) + self->options.gateway->interval_ns;
    if (self->list_error == 0) {
        s3_destination_wake(self, 0);
        return;
    }
    s3_pending_done(&self->pending);
    s3_destination_fail_with(self, self->profd.problem);
}

static int s3_destination_next_snapshot(S3Destination *self, uint64_t now_ns) {
    if (self->pending.next < self->pending.n) {
        self->item.is_snapshot = true;
        self->item.snapshot = self->pending.items[self->pending.next];
        self->item.file = self->next_file;
        return s3_destination_fetch(self);
    }
    /* A full list may have left some out. */
    if (now_ns < self->next_list_ns && self->pending.n < S3_PENDING_MAX) {
        s3_destination_wake(self,
                            MIN(self->next_list_ns - now_ns, self->options.gateway->interval_ns));
        return 0;
    }
    return s3_destination_start_task(self, s3_destination_run_list, s3_destination_on_listed);
}

static void s3_destination_on_cleaned(void *userdata, const S3UploadResult *result) {
    S3Destination *self = userdata;

    self->cleanup = NULL;
    if (result->verdict == S3_AGAIN ||
        (result->verdict != S3_DONE && ++self->cleanups < S3_CLEANUPS_MAX)) {
        s3_destination_fail(self, result);
        return;
    }
    if (result->verdict != S3_DONE)
        (void)log_warning(0, "Destination '%s': parts of '%s' may be left with the store",
                          self->options.config->name, self->state.key);
    self->cleanups = 0;
    s3_destination_forget_upload(self);
    s3_destination_save(self);
    s3_destination_wake(self, 0);
}

static int s3_destination_clean(S3Destination *self) {
    return s3_cleanup_start(&(S3CleanupOptions){.target = &self->target,
                                                .key = self->state.key,
                                                .upload_id = self->state.upload_id,
                                                .done = s3_destination_on_cleaned,
                                                .userdata = self},
                            &self->cleanup);
}

int s3_destination_step(void *userdata) {
    S3Destination *self = userdata;
    uint64_t now_ns = clock_ns(CLOCK_REALTIME);
    int r;

    if (self->task || self->upload || self->cleanup)
        return 0;
    if (now_ns < self->retry_ns && self->retry_ns - now_ns <= RETRY_AFTER_MAX_NS * 2) {
        s3_destination_wake(self, self->retry_ns - now_ns);
        return 0;
    }
    if (self->state.key[0] && self->state.is_multipart)
        r = s3_destination_clean(self);
    else if (s3_destination_sends_snapshots(self->options.config))
        r = s3_destination_next_snapshot(self, now_ns);
    else
        r = s3_destination_next_window(self, now_ns);
    if (r < 0) {
        s3_item_done(&self->item);
        s3_destination_fail_with(self, strerror(-r));
    }
    return 0;
}
