/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What replies are made of. A value that is NULL, for want of memory, makes the whole NULL. */

#include <jansson.h>

#include "control/control.h"

enum { ANSWER_TEXT_MAX = 256 };

/* Bytes from anywhere, through the one escape. */
json_t *answer_text(const char *text);
/* Likewise; null for NULL and for nothing. */
json_t *answer_text_or_null(const char *text);
/* Microseconds; null for 0. */
json_t *answer_time(uint64_t ns);
json_t *answer_count(uint64_t n);
/* What a caller said, back to him. It came in the form that we print, and is not escaped twice. */
json_t *answer_echo(const char *text);

/* Why a parameter is refused, where several methods have the same reason. */
#define ASK_NAME                                                                                   \
    "a name has letters, digits, '.', '_' and '-', at most 63, and begins with a letter or digit"
#define ASK_COUNT "it is negative"
#define ASK_TIME  "it is negative or too large"
#define ASK_SPAN  "it is 0, negative or too large"

/* What a parameter says; false when it is missing or null. */
bool ask_text(const Call *call, const char *name, const char **ret);
bool ask_flag(const Call *call, const char *name);
/* 1 when it is there, 0 when not, -EINVAL when it is negative. */
int ask_count(const Call *call, const char *name, uint64_t *ret);
/* The same for microseconds, as nanoseconds; too many of them are -EINVAL too. */
int ask_span(const Call *call, const char *name, uint64_t *ret_ns);

/* Replies with each member of an array (taken; NULL: no memory), none of them for none. */
int call_stream_array(Call *call, json_t *array);
/* The standard PermissionDenied. */
int call_fail_permission(Call *call);
/* Failed(), with a sentence of why; NULL: the words of the error. */
int call_fail_reason(Call *call, int error, const char *reason);
/* Busy(): in a second it may be better. */
int call_fail_busy(Call *call);
int call_fail_session(Call *call, const char *error, const char *session);
