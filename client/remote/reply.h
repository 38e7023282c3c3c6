/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Members of an object that the daemon sent. One that is missing, null or of another type reads
 * as nothing: a newer or older daemon is no reason to fail.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/frame/command.h"

/* "" for nothing. */
const char *reply_string(const json_t *object, const char *name);
/* 0 for nothing, and for less. */
uint64_t reply_count(const json_t *object, const char *name);
double reply_number(const json_t *object, const char *name);
bool reply_bool(const json_t *object, const char *name);
/* Whether it is there and not null. */
bool reply_has(const json_t *object, const char *name);
/* An object or array, or NULL. */
const json_t *reply_member(const json_t *object, const char *name);

/* Copies a value so that every string in it is safe to show as it is; NULL without memory. */
json_t *reply_shown(const json_t *value);

/* Appends the value as --json asks for it, and a newline. Returns an ExitStatus. */
int reply_print(Context *c, const json_t *value);
/* With --json prints what was done, where there is any; drops it. Returns `status`, or where that
 * is STATUS_OK why printing failed. */
int reply_print_done(Context *c, int status, json_t *done);
