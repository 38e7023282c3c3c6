/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Reads members of an object from the daemon. A member that is missing, null or of another type
 * counts as empty, so that older and newer daemons work.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/frame/command.h"

/* "" if it is missing. */
const char *reply_string(const json_t *object, const char *name);
/* 0 if it is missing or negative. */
uint64_t reply_count(const json_t *object, const char *name);
double reply_number(const json_t *object, const char *name);
bool reply_bool(const json_t *object, const char *name);
/* Whether it is present and not null. */
bool reply_has(const json_t *object, const char *name);
/* An object or array, or NULL. */
const json_t *reply_member(const json_t *object, const char *name);

/* Copies a value and escapes all strings in it; NULL without memory. */
json_t *reply_shown(const json_t *value);

/* Prints the value in the format of --json, and a newline. Returns an ExitStatus. */
int reply_print(Context *c, const json_t *value);
/* With --json prints what was done, where there is any; drops it. Returns `status`, or where that
 * is STATUS_OK why printing failed. */
int reply_print_done(Context *c, int status, json_t *done);
