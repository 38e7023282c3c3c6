/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "send/answer-text.h"

#include <string.h>

#include "transport/retry.h"
#include "util/text.h"

/*
 * Says what an engine answered, in a sentence that names the engine, the status and the beginning
 * of the answer, which often has the limit that was exceeded. The query of a URL is left out, since
 * some engines want a key there.
 */

enum { ANSWER_SHOWN_MAX = 120 };

static const char *answer_meaning(long status) {
    if (status >= 300 && status < 400)
        return "redirects elsewhere, which the gateway never follows: set URL= to the final one";
    switch (status) {
    case 401:
    case 403:
    case 407:
        return "does not accept the credentials";
    case 404:
        return "does not know the path of the URL";
    case 429:
        return "asks for fewer requests";
    default:
        return status >= 500 ? "cannot take the request now" : "refuses the request";
    }
}

/* Cut where a character ends. */
static void answer_cut(const Buffer *text, char *ret, size_t size) {
    size_t n = MIN(text->size, size - 1);

    while (n > 0 && n < text->size && (text->data[n] & 0xc0) == 0x80)
        n--;
    if (n > 0)
        memcpy(ret, text->data, n);
    ret[n] = '\0';
}

static void answer_put_engine(Buffer *out, const char *url) {
    size_t n = strcspn(url, "?#");

    text_puts(out, "The engine at ");
    text_escape(out, (Bytes){(const uint8_t *)url, n});
    text_putc(out, ' ');
}

/* The first line of the answer. In a message of protobuf, bytes that are no text come before it. */
static void answer_put_body(Buffer *out, const char *body) {
    size_t n;

    while (*body > 0 && *body < ' ')
        body++;
    n = strcspn(body, "\r\n");
    if (n == 0)
        return;
    text_puts(out, ": ");
    text_escape(out, (Bytes){(const uint8_t *)body, MIN(n, (size_t)ANSWER_SHOWN_MAX)});
}

void answer_sentence(const TransportAnswer *answer, const char *url, size_t request_bytes,
                     char *ret, size_t size) {
    _cleanup_(buffer_done) Buffer text = {};

    answer_put_engine(&text, url);
    if (answer->error != 0) {
        text_puts(&text, "does not answer: ");
        text_puts(&text, answer->problem[0] ? answer->problem : strerror(-answer->error));
    } else {
        if (send_verdict(answer) == SEND_TOO_LARGE)
            text_printf(&text, "says that a request of %zu bytes is too large", request_bytes);
        else
            text_puts(&text, answer_meaning(answer->status));
        text_printf(&text, " (HTTP %ld)", answer->status);
        answer_put_body(&text, answer->body);
    }
    answer_cut(&text, ret, size);
}

void answer_rejection_text(const EngineRejection *rejection, size_t n, const char *url, char *ret,
                           size_t size) {
    _cleanup_(buffer_done) Buffer text = {};
    Bytes message = rejection->message;

    answer_put_engine(&text, url);
    if (rejection->profiles > 0)
        text_printf(&text, "accepts the request, but not %zu of its %zu profile%s",
                    (size_t)MIN(rejection->profiles, (uint64_t)n), n, n == 1 ? "" : "s");
    else
        text_puts(&text, "accepts the request with a warning");
    if (message.size > 0) {
        text_puts(&text, ": ");
        message.size = MIN(message.size, (size_t)ANSWER_SHOWN_MAX);
        text_escape(&text, message);
    }
    answer_cut(&text, ret, size);
}

void answer_error_text(int error, const SendConfig *config, char *ret, size_t size) {
    _cleanup_(buffer_done) Buffer text = {};
    bool is_folder = config->url[0] == '/';

    text_puts(&text, is_folder ? "The gateway cannot write below "
                               : "The gateway cannot make a request for ");
    text_escape_str(&text, is_folder ? config->url : config->name);
    if (config->token_file[0] || config->password_file[0] || config->credential[0])
        text_puts(&text, " (it also reads the credentials)");
    text_printf(&text, ": %s", strerror(-error));
    answer_cut(&text, ret, size);
}
