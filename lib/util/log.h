/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * One line for each fact, on stderr or to the log backend. For daemon and client: libraries do not
 * log. Every function returns the error it was given, so `return log_error(r, "Failed to …: %m")`
 * logs and returns; %m is that error. Any thread may log.
 */

#include "util/macro.h"

typedef enum LogLevel {
    LOG_LEVEL_ERROR,
    LOG_LEVEL_WARNING,
    LOG_LEVEL_NOTICE,
    LOG_LEVEL_INFO,
    LOG_LEVEL_DEBUG
} LogLevel;

/* A structured field besides the message: PROFD_SESSION and the like, upper case. */
typedef struct LogField {
    const char *name;
    const char *value;
} LogField;

/* For the arguments `fields, n`: LOG_FIELDS({"PROFD_SESSION", name}, {"PROFD_LOST", text}). */
#define LOG_FIELDS(...)                                                                            \
    (const LogField[]){__VA_ARGS__}, sizeof((const LogField[]){__VA_ARGS__}) / sizeof(LogField)

/* Lines above this level are dropped; the default is LOG_LEVEL_INFO. */
void log_set_level(LogLevel level);
LogLevel log_level(void);
const char *log_level_name(LogLevel level);
/* Parses "err", "warning", "notice", "info" or "debug"; -EINVAL for other names. */
int log_level_from_name(const char *name, LogLevel *ret);
/* The priority in the numbers of syslog(3). */
int log_level_priority(LogLevel level);

/*
 * Receives lines instead of stderr, which is used for those that the backend refuses (a negative
 * errno). Message and values are escaped already; called from any thread. Set it before there are
 * threads; NULL: stderr again.
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

/* Copies the first error that this thread logs from now on to `to`, for a reply to a client; until
 * it is called with NULL. */
void log_keep_error(char *to, size_t size);
/* This thread logs nothing until it is called with false; log_keep_error() still works. For
 * operations that are retried or only checked. */
void log_mute(bool mute);

/*
 * For lines that may be frequent: `burst` of them in each interval, then none, and the next line
 * has the number that was left out. Static or embedded; each place in the code has its own LogRate.
 */
typedef struct LogRate {
    uint64_t interval_ns;
    unsigned burst;
    uint64_t began_ns, left_out; /* private */
    unsigned n;                  /* private */
} LogRate;

/* Whether a line may be logged now, and how many were left out before it. */
bool log_rate_pass(LogRate *rate, uint64_t now_ns, uint64_t *ret_left_out);
int log_limited(LogRate *rate, LogLevel level, int error, const char *format, ...) _printf_(4, 5);
int log_limited_struct(LogRate *rate, LogLevel level, int error, const LogField *fields, size_t n,
                       const char *format, ...) _printf_(6, 7);
