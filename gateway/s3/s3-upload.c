/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "s3/s3-upload.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "s3/s3-task.h"
#include "send/answer-text.h"
#include "send/file-folder.h"
#include "transport/retry.h"
#include "util/text.h"

/*
 * Sends an object, or writes it to a folder. The parts of one that is sent are read and hashed on a
 * thread, one after the other: while one is sent, no other is in memory. The list that completes a
 * multipart upload grows with each part.
 */

struct S3Upload {
    S3UploadOptions options;
    S3Task *task;            /* reads a part, or writes all */
    const atomic_bool *stop; /* the task's */
    S3Call *call;
    unsigned part; /* from 0 */
    S3Part data;
    int task_error;
    char id[S3_UPLOAD_ID_MAX];
    Buffer query, list;
};

static S3Upload *s3_upload_free(S3Upload *upload) {
    if (!upload)
        return NULL;
    s3_part_done(&upload->data);
    buffer_done(&upload->query);
    buffer_done(&upload->list);
    free(upload);
    return NULL;
}
DEFINE_CLEANUP(S3Upload *, s3_upload_free);

bool s3_upload_cancel(S3Upload *upload) {
    bool has_ended;

    if (!upload)
        return true;
    upload->call = s3_call_cancel(upload->call);
    has_ended = s3_task_cancel(upload->task);
    if (has_ended)
        (void)s3_upload_free(upload);
    return has_ended;
}

void s3_upload_result_of(const S3Result *result, S3UploadResult *ret) {
    *ret = (S3UploadResult){.verdict = result->verdict,
                            .retry_after_ns = result->retry_after_ns,
                            .status = result->status};
    memcpy(ret->sentence, result->sentence, sizeof(ret->sentence));
}

static void s3_upload_end(S3Upload *upload, const S3UploadResult *result) {
    S3UploadOptions options = upload->options;

    (void)s3_upload_free(upload);
    options.done(options.userdata, result);
}

/* `status`: of the answer in which the failure was found. What the store answered badly does not
 * hold up other objects. */
static void s3_upload_end_with(S3Upload *upload, S3Verdict verdict, long status,
                               const char *sentence) {
    S3UploadResult result = {.verdict = verdict, .status = status};

    (void)snprintf(result.sentence, sizeof(result.sentence), "%s", sentence);
    s3_upload_end(upload, &result);
}

/* Ends the upload unless the call succeeded. */
static bool s3_upload_has_failed(S3Upload *upload, const S3Result *call) {
    S3UploadResult result;

    upload->call = NULL;
    if (call->verdict == S3_DONE)
        return false;
    s3_upload_result_of(call, &result);
    s3_upload_end(upload, &result);
    return true;
}

static void s3_upload_call(S3Upload *upload, const S3Request *request, S3CallDone done) {
    S3Request full = *request;
    int r;

    full.key = upload->options.key;
    r = s3_call_start(upload->options.target, &full, done, upload, &upload->call);
    if (r < 0)
        s3_upload_end_with(upload, S3_AGAIN, SEND_STATUS_LOCAL, strerror(-r));
}

/* A query, ended by a NUL, for as long as a call lasts; NULL without memory. */
static const char *s3_upload_query(S3Upload *upload, bool of_part) {
    Buffer *query = &upload->query;

    buffer_clear(query);
    if (of_part)
        text_printf(query, "partNumber=%u&", upload->part + 1);
    text_puts(query, "uploadId=");
    s3_query_put(query, upload->id);
    text_putc(query, '\0');
    return buffer_error(query) == 0 ? (const char *)query->data : NULL;
}

static void s3_upload_next_part(S3Upload *upload);

static void s3_upload_on_completed(void *userdata, const S3Result *call) {
    S3Upload *upload = userdata;
    TransportAnswer answer = *call->answer;
    S3UploadResult result;
    char sentence[S3_SENTENCE_MAX];

    if (s3_upload_has_failed(upload, call))
        return;
    if (s3_answer_is_complete((Bytes){.data = answer.data, .size = answer.size})) {
        s3_upload_result_of(call, &result);
        s3_upload_end(upload, &result);
        return;
    }
    /* The status was sent before the store failed. */
    answer.status = 500;
    s3_upload_end_with(upload, s3_problem_judge(&answer, sentence), answer.status, sentence);
}

static void s3_upload_complete(S3Upload *upload) {
    const char *query = s3_upload_query(upload, false);

    text_puts(&upload->list, "</CompleteMultipartUpload>");
    if (!query || buffer_error(&upload->list) < 0)
        s3_upload_end_with(upload, S3_AGAIN, SEND_STATUS_LOCAL, strerror(ENOMEM));
    else
        s3_upload_call(
            upload,
            &(S3Request){.method = "POST", .query = query, .body = buffer_bytes(&upload->list)},
            s3_upload_on_completed);
}

/* An ETag goes back to the store inside of XML. */
static bool s3_upload_is_etag(const char *etag) {
    size_t n =
        strspn(etag, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789\"-_/+=.");

    return n > 0 && etag[n] == '\0';
}

static void s3_upload_on_part(void *userdata, const S3Result *call) {
    S3Upload *upload = userdata;

    if (s3_upload_has_failed(upload, call))
        return;
    s3_part_done(&upload->data);
    if (!s3_upload_is_etag(call->answer->etag)) {
        s3_upload_end_with(upload, S3_AGAIN, call->answer->status,
                           "The store gives no ETag for a part.");
        return;
    }
    upload->part++;
    text_printf(&upload->list, "<Part><PartNumber>%u</PartNumber><ETag>%s</ETag></Part>",
                upload->part, call->answer->etag);
    if (upload->part == upload->options.object->n_parts)
        s3_upload_complete(upload);
    else
        s3_upload_next_part(upload);
}

static void s3_upload_on_put(void *userdata, const S3Result *call) {
    S3Upload *upload = userdata;
    S3UploadResult result;

    if (s3_upload_has_failed(upload, call))
        return;
    s3_upload_result_of(call, &result);
    s3_upload_end(upload, &result);
}

static void s3_upload_run(void *userdata, const atomic_bool *stop _unused_) {
    S3Upload *upload = userdata;

    upload->task_error = s3_object_part(upload->options.object, upload->part, &upload->data);
}

static void s3_upload_on_read(void *userdata) {
    S3Upload *upload = userdata;
    bool is_only = upload->options.object->n_parts == 1;
    const char *query = is_only ? NULL : s3_upload_query(upload, true);

    upload->task = NULL;
    if (upload->task_error < 0 || (!is_only && !query)) {
        s3_upload_end_with(upload, S3_AGAIN, SEND_STATUS_LOCAL,
                           "A part of an object cannot be read back.");
        return;
    }
    s3_upload_call(
        upload,
        &(S3Request){
            .method = "PUT", .query = query, .body = upload->data.bytes, .hash = upload->data.hash},
        is_only ? s3_upload_on_put : s3_upload_on_part);
}

static int s3_upload_read_part(S3Upload *upload) {
    return s3_task_start(&(S3TaskOptions){.loop = upload->options.target->loop,
                                          .run = s3_upload_run,
                                          .done = s3_upload_on_read,
                                          .userdata = upload},
                         &upload->task);
}

static void s3_upload_next_part(S3Upload *upload) {
    int r = s3_upload_read_part(upload);

    if (r < 0)
        s3_upload_end_with(upload, S3_AGAIN, SEND_STATUS_LOCAL, strerror(-r));
}

static void s3_upload_on_begun(void *userdata, const S3Result *call) {
    S3Upload *upload = userdata;
    const TransportAnswer *answer = call->answer;
    int r;

    if (s3_upload_has_failed(upload, call))
        return;
    r = s3_answer_upload_id((Bytes){.data = answer->data, .size = answer->size}, upload->id);
    if (r < 0) {
        s3_upload_end_with(upload, S3_AGAIN, answer->status,
                           "The store gives no id for a multipart upload.");
        return;
    }
    upload->options.on_begin(upload->options.userdata, upload->id);
    s3_upload_next_part(upload);
}

static int s3_upload_begin_parts(S3Upload *upload) {
    const S3Request request = {.method = "POST", .key = upload->options.key, .query = "uploads="};

    text_puts(&upload->list, "<CompleteMultipartUpload>");
    return s3_call_start(upload->options.target, &request, s3_upload_on_begun, upload,
                         &upload->call);
}

static int s3_upload_fill(void *userdata, int fd) {
    const S3Upload *upload = userdata;

    return s3_object_write(upload->options.object, fd, upload->stop);
}

static void s3_upload_run_write(void *userdata, const atomic_bool *stop) {
    S3Upload *upload = userdata;

    upload->stop = stop;
    upload->task_error =
        file_folder_put(&(FileFolderPut){.folder = upload->options.target->config->url,
                                         .path = upload->options.key,
                                         .fill = s3_upload_fill,
                                         .userdata = upload});
}

static void s3_upload_on_written(void *userdata) {
    S3Upload *upload = userdata;
    S3Target *target = upload->options.target;
    S3UploadResult result = {.verdict = S3_DONE};

    upload->task = NULL;
    if (upload->task_error < 0) {
        result.verdict = S3_AGAIN;
        result.status = SEND_STATUS_LOCAL;
        answer_error_text(upload->task_error, target->config, result.sentence,
                          sizeof(result.sentence));
    } else {
        target->requests++;
        target->sent_bytes += upload->options.object->size;
    }
    s3_upload_end(upload, &result);
}

static int s3_upload_write(S3Upload *upload) {
    return s3_task_start(&(S3TaskOptions){.loop = upload->options.target->loop,
                                          .run = s3_upload_run_write,
                                          .done = s3_upload_on_written,
                                          .userdata = upload},
                         &upload->task);
}

int s3_upload_start(const S3UploadOptions *options, S3Upload **ret) {
    _cleanup_(s3_upload_freep) S3Upload *upload = calloc(1, sizeof(*upload));
    int r;

    if (!upload)
        return -ENOMEM;
    upload->options = *options;
    if (options->target->config->url[0] == '/')
        r = s3_upload_write(upload);
    else if (options->object->n_parts == 1)
        r = s3_upload_read_part(upload);
    else
        r = s3_upload_begin_parts(upload);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(upload);
    return 0;
}
