/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The JSON values that replies are made of. When one value is NULL because memory ran out, the
 * object that contains it becomes NULL too. */

#include <jansson.h>

#include "control/control.h"
#include "util/near.h"

enum { ANSWER_TEXT_MAX = 256 };

/* Escapes bytes from any source with text_escape(). */
json_t *answer_text(const char *text);
/* Likewise; null for NULL and for an empty string. */
json_t *answer_text_or_null(const char *text);
/* Microseconds; null for 0. */
json_t *answer_time(uint64_t ns);
json_t *answer_count(uint64_t n);
/* Returns a parameter to its caller. The caller sent it in the form that we print, so it is not
 * escaped again. */
json_t *answer_echo(const char *text);
/* Adds the list `near` to the parameters of an error, unless there is no similar name. */
void answer_near(json_t **parameters, const NearNames *near);

/* The reasons that several methods give for refusing a parameter. */
#define ASK_NAME                                                                                   \
    "a name has letters, digits, '.', '_' and '-', at most 63, and begins with a letter or digit"
#define ASK_COUNT "it is negative"
#define ASK_TIME  "it is negative or too large"
#define ASK_SPAN  "it is 0, negative or too large"

/* The value of a parameter; false when it is missing or null. */
bool ask_text(const Call *call, const char *name, const char **ret);
bool ask_flag(const Call *call, const char *name);
/* 1 when the parameter is present, 0 when it is missing, -EINVAL when it is negative. */
int ask_count(const Call *call, const char *name, uint64_t *ret);
/* The same for microseconds, converted to nanoseconds; -EINVAL also when the value is too large. */
int ask_span(const Call *call, const char *name, uint64_t *ret_ns);

/* Streams one reply for each element of an array, and a single empty reply for an empty array.
 * Takes ownership of the array; NULL means no memory. */
int call_stream_array(Call *call, json_t *array);
/* Fails with the standard error PermissionDenied. */
int call_fail_permission(Call *call);
/* Fails with Failed() and this reason; NULL: the text of the error. */
int call_fail_reason(Call *call, int error, const char *reason);
/* Fails with Busy(): the client may try again in a second. */
int call_fail_busy(Call *call);
int call_fail_session(Call *call, const char *error, const char *session);
