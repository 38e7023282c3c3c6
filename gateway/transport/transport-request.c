/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "transport/transport-request.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "encode/gzip-pack.h"
#include "transport/secret.h"
#include "util/clock.h"
#include "util/text.h"

/*
 * Turns the options of a request into those of libcurl, and its result into an answer. An engine is
 * not trusted: only http and https, no redirect, certificates are always verified, and headers and
 * body together are read up to a limit. What the environment says of proxies does not count, only
 * the configuration.
 */

enum {
    REQUEST_ANSWER_MAX = 64 * 1024,
    REQUEST_CONNECT_MS = 10 * 1000,
    REQUEST_TIMEOUT_MS = 30 * 1000,
    REQUEST_BYTES_PER_MS = 128, /* a request of many bytes may take longer */
    REQUEST_CA_CACHE_S = 600,
};

/* curl_easy_setopt() wants the exact type, and remembers no error. */
#define REQUEST_SET(r, easy, option, value)                                                        \
    do {                                                                                           \
        if ((r) == CURLE_OK)                                                                       \
            (r) = curl_easy_setopt(easy, option, value);                                           \
    } while (0)

TransportRequest *transport_request_free(TransportRequest *request) {
    if (!request)
        return NULL;
    if (request->easy)
        curl_easy_cleanup(request->easy);
    curl_slist_free_all(request->headers);
    buffer_done(&request->compressed);
    buffer_done(&request->body);
    free(request);
    return NULL;
}

static bool transport_request_take(TransportRequest *request, size_t n) {
    if (n > REQUEST_ANSWER_MAX - request->received) {
        request->is_cut = true;
        return false;
    }
    request->received += n;
    return true;
}

static size_t transport_request_on_body(char *data, size_t size, size_t n, void *userdata) {
    TransportRequest *request = userdata;
    size_t bytes = size * n, kept;

    if (!transport_request_take(request, bytes))
        return 0;
    kept = MIN(bytes, sizeof(request->answer.body) - 1 - request->kept);
    memcpy(request->answer.body + request->kept, data, kept);
    request->kept += kept;
    buffer_append(&request->body, data, bytes);
    return buffer_error(&request->body) == 0 ? bytes : 0;
}

static void transport_request_keep_etag(TransportAnswer *answer, const char *data, size_t n) {
    static const char name[] = "etag:";
    size_t skip = sizeof(name) - 1;

    if (n <= skip || strncasecmp(data, name, skip) != 0)
        return;
    while (skip < n && data[skip] == ' ')
        skip++;
    while (n > skip && (data[n - 1] == '\r' || data[n - 1] == '\n' || data[n - 1] == ' '))
        n--;
    if (n - skip >= sizeof(answer->etag))
        return;
    memcpy(answer->etag, data + skip, n - skip);
    answer->etag[n - skip] = '\0';
}

/* Also headers of interim answers come here, of which there could be any number. */
static size_t transport_request_on_header(char *data, size_t size, size_t n, void *userdata) {
    TransportRequest *request = userdata;
    size_t bytes = size * n;

    if (!transport_request_take(request, bytes))
        return 0;
    request->is_ended = bytes <= 2;
    transport_request_keep_etag(&request->answer, data, bytes);
    return bytes;
}

/* libcurl repeats a request over a new connection where one that was kept open ends without an
 * answer, and then reports the last attempt alone. */
static int transport_request_on_debug(CURL *easy _unused_, curl_infotype type, char *data _unused_,
                                      size_t size, void *userdata) {
    TransportRequest *request = userdata;

    if (type == CURLINFO_DATA_OUT)
        request->sent += size;
    return 0;
}

static int transport_request_put_header(TransportRequest *request, const char *text) {
    struct curl_slist *longer = curl_slist_append(request->headers, text);

    if (!longer)
        return -ENOMEM;
    request->headers = longer;
    return 0;
}

static int transport_request_put_pair(TransportRequest *request, const char *name,
                                      const char *value) {
    _cleanup_(buffer_done) Buffer text = {};
    int r;

    text_printf(&text, "%s: %s%c", name, value, 0);
    r = buffer_error(&text);
    if (r == 0)
        r = transport_request_put_header(request, (const char *)text.data);
    if (text.data)
        explicit_bzero(text.data, text.size);
    return r;
}

static int transport_request_headers(TransportRequest *request, const TransportOptions *options) {
    /* Without this libcurl waits a second for an engine that does not answer "100 Continue". */
    int r = options->sigv4 ? 0 : transport_request_put_header(request, "Expect:");

    if (r == 0 && options->content_type)
        r = transport_request_put_pair(request, "Content-Type", options->content_type);
    if (r == 0 && options->compress)
        r = transport_request_put_header(request, "Content-Encoding: gzip");
    for (size_t i = 0; options->headers && options->headers[i] && r == 0; i++)
        r = transport_request_put_header(request, options->headers[i]);
    return r;
}

/* The names of options for protocols changed in curl 7.85. */
static CURLcode transport_request_restrict(CURL *easy) {
    CURLcode r = CURLE_OK;

#if LIBCURL_VERSION_NUM >= 0x075500
    REQUEST_SET(r, easy, CURLOPT_PROTOCOLS_STR, "http,https");
    REQUEST_SET(r, easy, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
#else
    REQUEST_SET(r, easy, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
    REQUEST_SET(r, easy, CURLOPT_REDIR_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
    REQUEST_SET(r, easy, CURLOPT_FOLLOWLOCATION, 0L);
    REQUEST_SET(r, easy, CURLOPT_DISALLOW_USERNAME_IN_URL, 1L);
    REQUEST_SET(r, easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    REQUEST_SET(r, easy, CURLOPT_NOSIGNAL, 1L);
    REQUEST_SET(r, easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    REQUEST_SET(r, easy, CURLOPT_SSL_VERIFYPEER, 1L);
    REQUEST_SET(r, easy, CURLOPT_SSL_VERIFYHOST, 2L);
#if LIBCURL_VERSION_NUM >= 0x075700
    REQUEST_SET(r, easy, CURLOPT_CA_CACHE_TIMEOUT, (long)REQUEST_CA_CACHE_S);
    /* Else the end of a request waits for a name server: now its thread ends by itself. */
    REQUEST_SET(r, easy, CURLOPT_QUICK_EXIT, 1L);
#endif
    return r;
}

static CURLcode transport_request_configure(CURL *easy, const SendConfig *config) {
    CURLcode r = CURLE_OK;

    REQUEST_SET(r, easy, CURLOPT_PROXY, config->proxy);
    if (config->ca_file[0])
        REQUEST_SET(r, easy, CURLOPT_CAINFO, config->ca_file);
    if (config->certificate_file[0])
        REQUEST_SET(r, easy, CURLOPT_SSLCERT, config->certificate_file);
    if (config->key_file[0])
        REQUEST_SET(r, easy, CURLOPT_SSLKEY, config->key_file);
    return r;
}

/* A body that is not compressed is not copied. */
static CURLcode transport_request_body(TransportRequest *request, const TransportOptions *options) {
    const void *body = options->compress ? request->compressed.data : options->body;
    size_t size = options->compress ? request->compressed.size : options->size;
    uint64_t limit = options->config->timeout_ns / NS_PER_MS;
    CURL *easy = request->easy;
    CURLcode r = CURLE_OK;

    request->size = size;
    if (limit == 0)
        limit = REQUEST_TIMEOUT_MS;
    REQUEST_SET(r, easy, CURLOPT_CONNECTTIMEOUT_MS, (long)MIN(limit, (uint64_t)REQUEST_CONNECT_MS));
    limit += size / REQUEST_BYTES_PER_MS;
    REQUEST_SET(r, easy, CURLOPT_TIMEOUT_MS, (long)MIN(limit, (uint64_t)INT32_MAX));
    if (size > 0 || strcmp(options->method, "POST") == 0 || strcmp(options->method, "PUT") == 0) {
        REQUEST_SET(r, easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)size);
        REQUEST_SET(r, easy, CURLOPT_POSTFIELDS, size > 0 ? body : "");
    }
    REQUEST_SET(r, easy, CURLOPT_CUSTOMREQUEST, options->method);
    return r;
}

static CURLcode transport_request_callbacks(TransportRequest *request, const char *url) {
    CURL *easy = request->easy;
    CURLcode r = CURLE_OK;

    REQUEST_SET(r, easy, CURLOPT_PRIVATE, request);
    REQUEST_SET(r, easy, CURLOPT_ERRORBUFFER, request->error_text);
    REQUEST_SET(r, easy, CURLOPT_WRITEFUNCTION, transport_request_on_body);
    REQUEST_SET(r, easy, CURLOPT_WRITEDATA, request);
    REQUEST_SET(r, easy, CURLOPT_HEADERFUNCTION, transport_request_on_header);
    REQUEST_SET(r, easy, CURLOPT_HEADERDATA, request);
    REQUEST_SET(r, easy, CURLOPT_DEBUGFUNCTION, transport_request_on_debug);
    REQUEST_SET(r, easy, CURLOPT_DEBUGDATA, request);
    REQUEST_SET(r, easy, CURLOPT_VERBOSE, 1L);
    REQUEST_SET(r, easy, CURLOPT_HTTPHEADER, request->headers);
    REQUEST_SET(r, easy, CURLOPT_USERAGENT, "profd-gateway/" PROFD_VERSION);
    REQUEST_SET(r, easy, CURLOPT_URL, url);
    return r;
}

/* An access key may hold colons, as those of Swift do, and a secret none. */
static int transport_request_sign(TransportRequest *request, const char *sigv4, Secret *secret) {
    char *colon = strrchr(secret->text, ':');
    CURLcode code = CURLE_OK;

    if (!colon || colon == secret->text || !colon[1])
        return -EINVAL;
    *colon = '\0';
    REQUEST_SET(code, request->easy, CURLOPT_AWS_SIGV4, sigv4);
    REQUEST_SET(code, request->easy, CURLOPT_USERNAME, secret->text);
    REQUEST_SET(code, request->easy, CURLOPT_PASSWORD, colon + 1);
    /* A header "Expect:" without a value would be signed, and no store takes that. */
    REQUEST_SET(code, request->easy, CURLOPT_EXPECT_100_TIMEOUT_MS, 1L);
    return code == CURLE_OK ? 0 : -ENOMEM;
}

/* libcurl keeps what it is given for as long as the request lives. */
static int transport_request_authorize(TransportRequest *request, const TransportOptions *options) {
    _cleanup_(secret_done) Secret secret = {};
    CURLcode code = CURLE_OK;
    int r = secret_read(options->config, &secret);

    if (r < 0 || !secret.text[0])
        return r;
    if (options->sigv4)
        return transport_request_sign(request, options->sigv4, &secret);
    if (secret.is_basic) {
        REQUEST_SET(code, request->easy, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
        REQUEST_SET(code, request->easy, CURLOPT_USERPWD, secret.text);
    } else {
        REQUEST_SET(code, request->easy, CURLOPT_HTTPAUTH, (long)CURLAUTH_BEARER);
        REQUEST_SET(code, request->easy, CURLOPT_XOAUTH2_BEARER, secret.text);
    }
    return code == CURLE_OK ? 0 : -ENOMEM;
}

int transport_request_new(const TransportOptions *options, TransportRequest **ret) {
    _cleanup_(transport_request_freep) TransportRequest *request = calloc(1, sizeof(*request));
    CURLcode code;
    int r;

    if (!request)
        return -ENOMEM;
    request->done = options->done;
    request->userdata = options->userdata;
    request->easy = curl_easy_init();
    r = request->easy ? transport_request_headers(request, options) : -ENOMEM;
    if (r == 0 && options->compress)
        r = gzip_pack((Bytes){options->body, options->size}, &request->compressed);
    if (r == 0)
        r = transport_request_authorize(request, options);
    if (r < 0)
        return r;
    code = transport_request_restrict(request->easy);
    if (code == CURLE_OK)
        code = transport_request_configure(request->easy, options->config);
    if (code == CURLE_OK)
        code = transport_request_body(request, options);
    if (code == CURLE_OK)
        code = transport_request_callbacks(request, options->url);
    if (code != CURLE_OK)
        return code == CURLE_OUT_OF_MEMORY ? -ENOMEM : -EINVAL;
    *ret = TAKE_PTR(request);
    return 0;
}

static int transport_request_error(CURLcode result) {
    switch (result) {
    case CURLE_OK:
        return 0;
    case CURLE_COULDNT_CONNECT:
        return -ECONNREFUSED;
    case CURLE_OPERATION_TIMEDOUT:
        return -ETIMEDOUT;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
        return -EHOSTUNREACH;
    case CURLE_OUT_OF_MEMORY:
        return -ENOMEM;
    default:
        return -EIO;
    }
}

/* A certificate or an engine may have written a part of it. */
static void transport_request_explain(TransportRequest *request, CURLcode result) {
    const char *text = request->is_cut          ? "the headers of the answer are too long"
                       : request->error_text[0] ? request->error_text
                                                : curl_easy_strerror(result);
    _cleanup_(buffer_done) Buffer escaped = {};
    size_t n;

    text_escape_str(&escaped, text);
    n = MIN(escaped.size, sizeof(request->answer.problem) - 1);
    while (n > 0 && n < escaped.size && (escaped.data[n] & 0xc0) == 0x80)
        n--;
    if (n > 0)
        memcpy(request->answer.problem, escaped.data, n);
    request->answer.problem[n] = '\0';
}

void transport_request_finish(TransportRequest *request, CURLcode result) {
    TransportAnswer *answer = &request->answer;
    curl_off_t after = 0;

    answer->data = request->body.data;
    answer->size = request->body.size;
    (void)curl_easy_getinfo(request->easy, CURLINFO_RESPONSE_CODE, &answer->status);
    (void)curl_easy_getinfo(request->easy, CURLINFO_RETRY_AFTER, &after);
    answer->sent_bytes = request->sent;
    answer->is_resent = request->sent > request->size;
    if (after > 0)
        answer->retry_after_ns = MIN((uint64_t)after, UINT64_C(86400)) * NS_PER_SECOND;
    /* The verdict is in the status: an answer whose body never ends, or is cut, is one all the
     * same. */
    if (request->is_ended && answer->status >= 200)
        return;
    answer->error = transport_request_error(result);
    if (result != CURLE_OK)
        transport_request_explain(request, result);
    if (answer->error != 0)
        answer->status = 0;
}
