/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "util/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syslog.h>

#include "util/buffer.h"
#include "util/text.h"

/*
 * The log: one write(2) a line, so that lines of two processes do not mix. What the line is made
 * of may hold bytes from outside, so it passes the one escape on its way out.
 */

static LogLevel level_max = LOG_LEVEL_INFO;

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

int log_level_from_name(const char *name, LogLevel *ret) {
    for (size_t i = 0; i < ARRAY_SIZE(levels); i++)
        if (strcmp(levels[i].name, name) == 0) {
            *ret = (LogLevel)i;
            return 0;
        }
    return -EINVAL;
}

int log_at(LogLevel level, int error, const char *format, ...) {
    _cleanup_(buffer_done) Buffer line = {};
    int saved = errno;
    char text[1024];
    va_list ap;

    if (level > level_max)
        return error;
    errno = -error;
    va_start(ap, format);
    (void)vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    if (getenv("JOURNAL_STREAM"))
        text_printf(&line, "<%d>", levels[level].priority);
    text_escape(&line, (Bytes){.data = (const uint8_t *)text, .size = strlen(text)});
    text_putc(&line, '\n');
    if (buffer_error(&line) == 0)
        (void)!write(STDERR_FILENO, line.data, line.size);
    errno = saved;
    return error;
}
