/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "s3/s3-call.h"

#include <errno.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "transport/retry.h"
#include "util/clock.h"
#include "util/text.h"

/*
 * Builds the URL and the headers of a request and sends it. libcurl signs it (Signature Version 4);
 * the hash of the body is ours, and the store compares it with what it gets. A failure that may
 * pass is repeated a few times, after 1 s, 2 s and so on, with jitter. The call then ends, because
 * a part of an object should not stay in memory for longer.
 */

#define S3_REGION_DEFAULT "us-east-1"

enum { S3_ATTEMPTS = 4 };
#define S3_FIRST_DELAY_NS   NS_PER_SECOND
#define S3_LONGEST_DELAY_NS (20 * NS_PER_SECOND)

struct S3Call {
    S3Target *target;
    S3Request request;
    char *url;
    char hash_header[32 + S3_HASH_MAX];
    TransportRequest *sent;
    LoopSource *timer;
    unsigned attempts;
    S3CallDone done;
    void *userdata;
};

void s3_target_init(S3Target *target, const SendConfig *config, Transport *transport, Loop *loop) {
    *target = (S3Target){.config = config, .transport = transport, .loop = loop};
    (void)snprintf(target->sigv4, sizeof(target->sigv4), "aws:amz:%s:s3",
                   config->region[0] ? config->region : S3_REGION_DEFAULT);
}

void s3_hash(Bytes bytes, char ret[S3_HASH_MAX]) {
    uint8_t digest[SHA256_DIGEST_LENGTH];

    (void)SHA256(bytes.data ? bytes.data : (const uint8_t *)"", bytes.size, digest);
    for (size_t i = 0; i < sizeof(digest); i++)
        (void)snprintf(ret + 2 * i, 3, "%02x", digest[i]);
}

void s3_query_put(Buffer *query, const char *value) {
    for (const char *p = value; *p; p++)
        if (strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~", *p))
            text_putc(query, *p);
        else
            text_printf(query, "%%%02X", (unsigned)(uint8_t)*p);
}

static S3Call *s3_call_free(S3Call *call) {
    if (!call)
        return NULL;
    loop_source_free(call->timer);
    free(call->url);
    free(call);
    return NULL;
}
DEFINE_CLEANUP(S3Call *, s3_call_free);

S3Call *s3_call_cancel(S3Call *call) {
    if (call)
        call->sent = transport_cancel(call->sent);
    return s3_call_free(call);
}

/* URL[/KEY][?QUERY]; the URL of a bucket that is a host name needs a "/" of its own. */
static int s3_call_make_url(S3Call *call) {
    const char *base = call->target->config->url, *path = strstr(base, "://");
    const S3Request *request = &call->request;
    _cleanup_(buffer_done) Buffer url = {};
    size_t n = strlen(base);

    while (n > 0 && base[n - 1] == '/')
        n--;
    buffer_append(&url, base, n);
    path = path ? memchr(path + 3, '/', (size_t)(base + n - MIN(path + 3, base + n))) : NULL;
    if (request->key)
        text_printf(&url, "/%s", request->key);
    else if (!path)
        text_putc(&url, '/');
    if (request->query)
        text_printf(&url, "?%s", request->query);
    text_putc(&url, '\0');
    if (buffer_error(&url) < 0)
        return buffer_error(&url);
    call->url = (char *)TAKE_PTR(url.data);
    return 0;
}

static int s3_call_send(S3Call *call);

static void s3_call_end(S3Call *call, S3Result *result) {
    S3CallDone done = call->done;
    void *userdata = call->userdata;

    (void)s3_call_free(call);
    done(userdata, result);
}

/* Between half of the delay and all of it, so that many gateways do not come back together. */
static uint64_t s3_call_delay(const S3Call *call) {
    uint64_t delay = S3_FIRST_DELAY_NS << (call->attempts - 1), jitter = 0;

    (void)!getrandom(&jitter, sizeof(jitter), GRND_NONBLOCK);
    return delay / 2 + jitter % (delay / 2);
}

/* Whether it is sent once more. */
static bool s3_call_repeat(S3Call *call, const S3Result *result) {
    uint64_t delay;

    if (result->verdict != S3_AGAIN || call->attempts >= S3_ATTEMPTS ||
        result->retry_after_ns > S3_LONGEST_DELAY_NS)
        return false;
    delay = MAX(s3_call_delay(call), result->retry_after_ns);
    if (loop_trigger_after(call->timer, delay) < 0)
        return false;
    call->target->retries++;
    return true;
}

static void s3_call_on_answer(void *userdata, const TransportAnswer *answer) {
    S3Call *call = userdata;
    S3Result result = {
        .status = answer->status, .retry_after_ns = answer->retry_after_ns, .answer = answer};

    call->sent = NULL;
    result.verdict = s3_problem_judge(answer, result.sentence);
    if (result.verdict == S3_DONE) {
        call->target->requests++;
        call->target->sent_bytes += answer->sent_bytes;
    } else if (result.verdict != S3_REFUSED)
        call->target->on_problem(call->target->userdata, result.sentence, result.status);
    if (!s3_call_repeat(call, &result))
        s3_call_end(call, &result);
}

/* It was not even sent: for lack of a secret, most of all. */
static void s3_call_fail(S3Call *call, int error) {
    TransportAnswer answer = {.error = error};
    S3Result result = {.verdict = S3_WAIT, .status = SEND_STATUS_LOCAL, .answer = &answer};

    if (error == -EINVAL)
        (void)snprintf(result.sentence, sizeof(result.sentence),
                       "The secret of the destination is not ACCESS-KEY:SECRET in one line.");
    else
        (void)snprintf(result.sentence, sizeof(result.sentence),
                       "The secret of the destination cannot be read: %s.", strerror(-error));
    call->target->on_problem(call->target->userdata, result.sentence, result.status);
    s3_call_end(call, &result);
}

static int s3_call_on_timer(void *userdata) {
    S3Call *call = userdata;
    int r = s3_call_send(call);

    if (r < 0)
        s3_call_fail(call, r);
    return 0;
}

/* libcurl would add a type of its own to a POST, which the store would keep as that of the object.
 */
static const char *s3_call_content_type(const S3Request *request) {
    return request->method[0] == 'P' ? "application/octet-stream" : NULL;
}

static int s3_call_send(S3Call *call) {
    const char *headers[] = {call->hash_header, NULL};
    const S3Request *request = &call->request;

    call->attempts++;
    return transport_send(call->target->transport,
                          &(TransportOptions){.config = call->target->config,
                                              .method = request->method,
                                              .url = call->url,
                                              .content_type = s3_call_content_type(request),
                                              .headers = headers,
                                              .body = request->body.data,
                                              .size = request->body.size,
                                              .sigv4 = call->target->sigv4,
                                              .done = s3_call_on_answer,
                                              .userdata = call},
                          &call->sent);
}

int s3_call_start(S3Target *target, const S3Request *request, S3CallDone done, void *userdata,
                  S3Call **ret) {
    _cleanup_(s3_call_freep) S3Call *call = calloc(1, sizeof(*call));
    char hash[S3_HASH_MAX];
    int r;

    if (!call)
        return -ENOMEM;
    *call = (S3Call){.target = target, .request = *request, .done = done, .userdata = userdata};
    if (!request->hash)
        s3_hash(request->body, hash);
    (void)snprintf(call->hash_header, sizeof(call->hash_header), "x-amz-content-sha256: %s",
                   request->hash ? request->hash : hash);
    r = s3_call_make_url(call);
    if (r == 0)
        r = loop_add_deferred(target->loop, s3_call_on_timer, call, &call->timer);
    if (r == 0)
        r = loop_trigger(call->timer);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(call);
    return 0;
}
