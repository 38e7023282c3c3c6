/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * One line a fact, on stderr. For daemon and client: libraries do not log. Every function returns
 * the error it was given, so that `return log_error(r, "Failed to …: %m")` logs and leaves; %m
 * names that error. Under a journal the line carries its priority in the way sd-daemon(3) defines.
 */

#include "util/macro.h"

typedef enum LogLevel {
    LOG_LEVEL_ERROR,
    LOG_LEVEL_WARNING,
    LOG_LEVEL_NOTICE,
    LOG_LEVEL_INFO,
    LOG_LEVEL_DEBUG
} LogLevel;

/* Lines above this level are dropped; LOG_LEVEL_INFO until it is set. */
void log_set_level(LogLevel level);
/* By name ("err", "warning", "notice", "info", "debug"); -EINVAL when it is none of them. */
int log_level_from_name(const char *name, LogLevel *ret);

int log_at(LogLevel level, int error, const char *format, ...) _printf_(3, 4);

#define log_error(error, ...)   log_at(LOG_LEVEL_ERROR, error, __VA_ARGS__)
#define log_warning(error, ...) log_at(LOG_LEVEL_WARNING, error, __VA_ARGS__)
#define log_notice(...)         ((void)log_at(LOG_LEVEL_NOTICE, 0, __VA_ARGS__))
#define log_info(...)           ((void)log_at(LOG_LEVEL_INFO, 0, __VA_ARGS__))
#define log_debug(...)          ((void)log_at(LOG_LEVEL_DEBUG, 0, __VA_ARGS__))
