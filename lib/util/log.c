/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "util/log.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syslog.h>

#include "util/buffer.h"
#include "util/clock.h"
#include "util/text.h"

/*
 * The log: one write(2) for each line, so that lines of two threads or processes do not mix. A line
 * may contain bytes from outside, so it is escaped. A backend gets the line in parts; what it
 * refuses goes to stderr.
 */

enum { FIELDS_MAX = 16, TEXT_MAX = 1024 };

static _Atomic LogLevel level_max = LOG_LEVEL_INFO;
static _Atomic LogBackend backend;
static _Thread_local char *kept;
static _Thread_local size_t kept_size;
static _Thread_local bool is_muted;
static pthread_mutex_t rate_lock = PTHREAD_MUTEX_INITIALIZER;

/* clang-format off */
static const struct {
    const char *name;
    int         priority;
} levels[] = {
    [LOG_LEVEL_ERROR]   = { "err",     LOG_ERR     },
    [LOG_LEVEL_WARNING] = { "warning", LOG_WARNING },
    [LOG_LEVEL_NOTICE]  = { "notice",  LOG_NOTICE  },
    [LOG_LEVEL_INFO]    = { "info",    LOG_INFO    },
    [LOG_LEVEL_DEBUG]   = { "debug",   LOG_DEBUG   },
};
/* clang-format on */

void log_set_level(LogLevel level) {
    level_max = level;
}

LogLevel log_level(void) {
    return level_max;
}

const char *log_level_name(LogLevel level) {
    return levels[level].name;
}

void log_keep_error(char *to, size_t size) {
    kept = to;
    kept_size = size;
    if (to)
        to[0] = '\0';
}

void log_mute(bool mute) {
    is_muted = mute;
}

void log_set_backend(LogBackend send) {
    backend = send;
}

int log_level_priority(LogLevel level) {
    return levels[level].priority;
}

int log_level_from_name(const char *name, LogLevel *ret) {
    for (size_t i = 0; i < ARRAY_SIZE(levels); i++)
        if (strcmp(levels[i].name, name) == 0) {
            *ret = (LogLevel)i;
            return 0;
        }
    return -EINVAL;
}

/* A reader of stderr that understands priorities expects them before the line, see sd-daemon(3). */
static void log_to_stderr(LogLevel level, const char *message) {
    _cleanup_(buffer_done) Buffer line = {};

    if (getenv("JOURNAL_STREAM"))
        text_printf(&line, "<%d>", levels[level].priority);
    text_puts(&line, message);
    text_putc(&line, '\n');
    if (buffer_error(&line) == 0)
        (void)!write(STDERR_FILENO, line.data, line.size);
}

/* Escapes the values into one buffer; their pointers are set when all are there. */
static int log_escape_fields(const LogField *fields, size_t n, Buffer *values, LogField *ret) {
    size_t at[FIELDS_MAX];

    for (size_t i = 0; i < n; i++) {
        at[i] = values->size;
        text_escape_str(values, fields[i].value);
        text_putc(values, '\0');
    }
    if (buffer_error(values) < 0)
        return buffer_error(values);
    for (size_t i = 0; i < n; i++)
        ret[i] = (LogField){fields[i].name, (const char *)values->data + at[i]};
    return 0;
}

static void log_send(LogLevel level, int error, const char *text, const LogField *fields,
                     size_t n) {
    _cleanup_(buffer_done) Buffer message = {}, values = {};
    LogBackend to = backend;
    LogField escaped[FIELDS_MAX];
    int r = -ENOTCONN;

    assert(n <= FIELDS_MAX);
    text_escape_str(&message, text);
    text_putc(&message, '\0');
    if (buffer_error(&message) < 0)
        return;
    if (to)
        r = log_escape_fields(fields, n, &values, escaped);
    if (to && r == 0)
        r = to(level, error, (const char *)message.data, escaped, n);
    if (r < 0)
        log_to_stderr(level, (const char *)message.data);
}

static void _printf_(6, 0) log_v(LogLevel level, int error, const LogField *fields, size_t n,
                                 uint64_t left_out, const char *format, va_list ap) {
    int saved = errno, length;
    char text[TEXT_MAX];

    errno = -error;
    length = vsnprintf(text, sizeof(text), format, ap);
    if (left_out > 0 && length >= 0 && (size_t)length < sizeof(text))
        (void)snprintf(text + length, sizeof(text) - (size_t)length,
                       " (%" PRIu64 " more like this were not logged)", left_out);
    if (level == LOG_LEVEL_ERROR && kept && !kept[0])
        (void)snprintf(kept, kept_size, "%s", text);
    if (!is_muted)
        log_send(level, error, text, fields, n);
    errno = saved;
}

int log_at(LogLevel level, int error, const char *format, ...) {
    va_list ap;

    if (level > level_max)
        return error;
    va_start(ap, format);
    log_v(level, error, NULL, 0, 0, format, ap);
    va_end(ap);
    return error;
}

int log_struct(LogLevel level, int error, const LogField *fields, size_t n, const char *format,
               ...) {
    va_list ap;

    if (level > level_max)
        return error;
    va_start(ap, format);
    log_v(level, error, fields, n, 0, format, ap);
    va_end(ap);
    return error;
}

bool log_rate_pass(LogRate *rate, uint64_t now_ns, uint64_t *ret_left_out) {
    bool passes;

    pthread_mutex_lock(&rate_lock);
    /* Another thread may have looked at the clock later and come first. */
    if (rate->n == 0 || now_ns >= rate->began_ns + rate->interval_ns) {
        rate->began_ns = now_ns;
        rate->n = 0;
    }
    passes = rate->n < rate->burst;
    if (passes) {
        rate->n++;
        *ret_left_out = rate->left_out;
        rate->left_out = 0;
    } else {
        rate->left_out++;
    }
    pthread_mutex_unlock(&rate_lock);
    return passes;
}

int log_limited(LogRate *rate, LogLevel level, int error, const char *format, ...) {
    uint64_t left_out = 0;
    va_list ap;

    if (level > level_max || !log_rate_pass(rate, clock_monotonic_ns(), &left_out))
        return error;
    va_start(ap, format);
    log_v(level, error, NULL, 0, left_out, format, ap);
    va_end(ap);
    return error;
}

int log_limited_struct(LogRate *rate, LogLevel level, int error, const LogField *fields, size_t n,
                       const char *format, ...) {
    uint64_t left_out = 0;
    va_list ap;

    if (level > level_max || !log_rate_pass(rate, clock_monotonic_ns(), &left_out))
        return error;
    va_start(ap, format);
    log_v(level, error, fields, n, left_out, format, ap);
    va_end(ap);
    return error;
}
