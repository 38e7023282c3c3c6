/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "s3/s3-cleanup.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "transport/retry.h"
#include "util/text.h"

/*
 * Where the id is known, one request aborts the upload. A gateway that was killed between asking
 * for an upload and noting its id has to look: the uploads of this very key are listed and aborted,
 * a few at a time, until the list is empty.
 */

enum { S3_CLEANUP_ROUNDS = 16 };

/* An upload that may not be looked for, or by a store that has no list of them, must not stop all
 * others; what a store answers while it is overloaded may change within an hour or so. */
enum { REFUSED_MAX = 5, OVERLOADED_MAX = 20 };

struct S3Cleanup {
    S3CleanupOptions options;
    S3Call *call;
    Buffer query;
    S3Uploads uploads; /* to abort */
    unsigned rounds;
};

static S3Cleanup *s3_cleanup_free(S3Cleanup *cleanup) {
    if (!cleanup)
        return NULL;
    buffer_done(&cleanup->query);
    free(cleanup);
    return NULL;
}
DEFINE_CLEANUP(S3Cleanup *, s3_cleanup_free);

S3Cleanup *s3_cleanup_cancel(S3Cleanup *cleanup) {
    if (cleanup)
        cleanup->call = s3_call_cancel(cleanup->call);
    return s3_cleanup_free(cleanup);
}

static void s3_cleanup_end(S3Cleanup *cleanup, const S3UploadResult *result) {
    S3CleanupOptions options = cleanup->options;

    (void)s3_cleanup_free(cleanup);
    options.done(options.userdata, result);
}

static int s3_cleanup_call(S3Cleanup *cleanup, const char *method, const char *key,
                           S3CallDone done) {
    text_putc(&cleanup->query, '\0');
    if (buffer_error(&cleanup->query) < 0)
        return buffer_error(&cleanup->query);
    return s3_call_start(
        cleanup->options.target,
        &(S3Request){.method = method, .key = key, .query = (const char *)cleanup->query.data},
        done, cleanup, &cleanup->call);
}

static int s3_cleanup_abort(S3Cleanup *cleanup);
static int s3_cleanup_look(S3Cleanup *cleanup);

/* What comes after a request: the next one, or the end. */
static int s3_cleanup_step(S3Cleanup *cleanup) {
    if (cleanup->uploads.n > 0)
        return s3_cleanup_abort(cleanup);
    if (cleanup->options.upload_id[0] || cleanup->rounds >= S3_CLEANUP_ROUNDS) {
        s3_cleanup_end(cleanup, &(S3UploadResult){.verdict = S3_DONE});
        return 0;
    }
    return s3_cleanup_look(cleanup);
}

static void s3_cleanup_go_on(S3Cleanup *cleanup) {
    S3UploadResult result = {.verdict = S3_AGAIN, .status = SEND_STATUS_LOCAL};
    int r = s3_cleanup_step(cleanup);

    if (r == 0)
        return;
    (void)snprintf(result.sentence, sizeof(result.sentence), "%s", strerror(-r));
    s3_cleanup_end(cleanup, &result);
}

/* An upload that is not there any more needs no abort. */
static void s3_cleanup_on_aborted(void *userdata, const S3Result *call) {
    S3Cleanup *cleanup = userdata;
    S3UploadResult result;

    cleanup->call = NULL;
    s3_upload_result_of(call, &result);
    if (call->verdict != S3_DONE && call->verdict != S3_RESTART && call->answer->status != 404) {
        s3_cleanup_end(cleanup, &result);
        return;
    }
    cleanup->uploads.n--;
    s3_cleanup_go_on(cleanup);
}

static int s3_cleanup_abort(S3Cleanup *cleanup) {
    buffer_clear(&cleanup->query);
    text_puts(&cleanup->query, "uploadId=");
    s3_query_put(&cleanup->query, cleanup->uploads.ids[cleanup->uploads.n - 1]);
    return s3_cleanup_call(cleanup, "DELETE", cleanup->options.key, s3_cleanup_on_aborted);
}

static void s3_cleanup_on_list(void *userdata, const S3Result *call) {
    S3Cleanup *cleanup = userdata;
    const TransportAnswer *answer = call->answer;
    S3UploadResult result;
    int r = 0;

    cleanup->call = NULL;
    s3_upload_result_of(call, &result);
    if (call->verdict == S3_DONE)
        r = s3_answer_uploads((Bytes){.data = answer->data, .size = answer->size},
                              cleanup->options.key, &cleanup->uploads);
    if (r < 0) {
        result.verdict = S3_WAIT;
        (void)snprintf(result.sentence, sizeof(result.sentence),
                       "The store gives no valid list of multipart uploads.");
    }
    if (result.verdict == S3_DONE && cleanup->uploads.n > 0)
        s3_cleanup_go_on(cleanup);
    else
        s3_cleanup_end(cleanup, &result);
}

static int s3_cleanup_look(S3Cleanup *cleanup) {
    cleanup->rounds++;
    buffer_clear(&cleanup->query);
    text_puts(&cleanup->query, "prefix=");
    s3_query_put(&cleanup->query, cleanup->options.key);
    text_puts(&cleanup->query, "&uploads=");
    return s3_cleanup_call(cleanup, "GET", NULL, s3_cleanup_on_list);
}

int s3_cleanup_start(const S3CleanupOptions *options, S3Cleanup **ret) {
    _cleanup_(s3_cleanup_freep) S3Cleanup *cleanup = calloc(1, sizeof(*cleanup));
    int r;

    if (!cleanup)
        return -ENOMEM;
    cleanup->options = *options;
    if (options->upload_id[0]) {
        (void)snprintf(cleanup->uploads.ids[0], S3_UPLOAD_ID_MAX, "%s", options->upload_id);
        cleanup->uploads.n = 1;
    }
    r = s3_cleanup_step(cleanup);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(cleanup);
    return 0;
}

bool s3_cleanup_is_over(const S3UploadResult *result, unsigned *failed) {
    bool may_come = result->verdict == S3_AGAIN;

    if (result->verdict == S3_DONE)
        return true;
    if (result->status <= 0)
        return false;
    return ++*failed >= (may_come ? OVERLOADED_MAX : REFUSED_MAX);
}
