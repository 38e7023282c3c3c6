/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * One line a fact, on stderr or to whom the process names. For daemon and client: libraries do not
 * log. Every function returns the error it was given, so that `return log_error(r, "Failed to …:
 * %m")` logs and leaves; %m names that error. Any thread may log.
 */

#include "util/macro.h"

typedef enum LogLevel {
    LOG_LEVEL_ERROR,
    LOG_LEVEL_WARNING,
    LOG_LEVEL_NOTICE,
    LOG_LEVEL_INFO,
    LOG_LEVEL_DEBUG
} LogLevel;

/* What a log that keeps more than lines keeps beside one: PROFD_SESSION and its like, upper case.
 */
typedef struct LogField {
    const char *name;
    const char *value;
} LogField;

/* In place of `fields, n`: LOG_FIELDS({"PROFD_SESSION", name}, {"PROFD_LOST", text}). */
#define LOG_FIELDS(...)                                                                            \
    (const LogField[]){__VA_ARGS__}, sizeof((const LogField[]){__VA_ARGS__}) / sizeof(LogField)

/* Lines above this level are dropped; LOG_LEVEL_INFO until it is set. */
void log_set_level(LogLevel level);
LogLevel log_level(void);
const char *log_level_name(LogLevel level);
/* By name ("err", "warning", "notice", "info", "debug"); -EINVAL when it is none of them. */
int log_level_from_name(const char *name, LogLevel *ret);
/* As syslog(3) counts. */
int log_level_priority(LogLevel level);

/*
 * Where lines go instead of stderr, which stays for those that it does not take (a negative
 * errno). Message and values are escaped already; from any thread. Set it before there are threads;
 * NULL: stderr again.
 */
typedef int (*LogBackend)(LogLevel level, int error, const char *message, const LogField *fields,
                          size_t n);
void log_set_backend(LogBackend backend);

int log_at(LogLevel level, int error, const char *format, ...) _printf_(3, 4);
int log_struct(LogLevel level, int error, const LogField *fields, size_t n, const char *format, ...)
    _printf_(5, 6);

#define log_error(error, ...)   log_at(LOG_LEVEL_ERROR, error, __VA_ARGS__)
#define log_warning(error, ...) log_at(LOG_LEVEL_WARNING, error, __VA_ARGS__)
#define log_notice(...)         ((void)log_at(LOG_LEVEL_NOTICE, 0, __VA_ARGS__))
#define log_info(...)           ((void)log_at(LOG_LEVEL_INFO, 0, __VA_ARGS__))
#define log_debug(...)          ((void)log_at(LOG_LEVEL_DEBUG, 0, __VA_ARGS__))

/* The first error that this thread logs from here on is kept in `to` as well, for whoever has to
 * tell somebody why; until it is called with NULL. */
void log_keep_error(char *to, size_t size);
/* This thread logs nothing until it is called with false; errors are kept all the same. For what is
 * tried again and again, or only checked. */
void log_mute(bool mute);

/*
 * For lines that may come often: `burst` of them in each interval, then silence, and the next line
 * tells how many were left out. Static or embedded; one place in the code, one LogRate.
 */
typedef struct LogRate {
    uint64_t interval_ns;
    unsigned burst;
    uint64_t began_ns, left_out; /* private */
    unsigned n;                  /* private */
} LogRate;

/* Whether a line may pass now, and how many before it did not. */
bool log_rate_pass(LogRate *rate, uint64_t now_ns, uint64_t *ret_left_out);
int log_limited(LogRate *rate, LogLevel level, int error, const char *format, ...) _printf_(4, 5);
int log_limited_struct(LogRate *rate, LogLevel level, int error, const LogField *fields, size_t n,
                       const char *format, ...) _printf_(6, 7);
