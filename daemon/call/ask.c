/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "call/answer.h"
#include "util/clock.h"

/*
 * Reads the parameters of a call, and has the failures that several methods share. The control room
 * has checked types against the interface; this file checks ranges. Do not read a parameter after
 * the call has ended.
 */

enum { BUSY_MS = 1000 };

static json_t *ask_parameter(const Call *call, const char *name) {
    json_t *value = json_object_get(call_parameters(call), name);

    return json_is_null(value) ? NULL : value;
}

bool ask_text(const Call *call, const char *name, const char **ret) {
    json_t *value = ask_parameter(call, name);

    if (!value)
        return false;
    *ret = json_string_value(value);
    return true;
}

bool ask_flag(const Call *call, const char *name) {
    return json_is_true(ask_parameter(call, name));
}

int ask_count(const Call *call, const char *name, uint64_t *ret) {
    json_t *value = ask_parameter(call, name);

    if (!value)
        return 0;
    if (json_integer_value(value) < 0)
        return -EINVAL;
    *ret = (uint64_t)json_integer_value(value);
    return 1;
}

int ask_span(const Call *call, const char *name, uint64_t *ret_ns) {
    uint64_t us;
    int r = ask_count(call, name, &us);

    if (r <= 0)
        return r;
    if (us > INT64_MAX / NS_PER_US)
        return -EINVAL;
    *ret_ns = us * NS_PER_US;
    return 1;
}

typedef struct Walk {
    json_t *array;
    size_t at;
} Walk;

static int ask_next_session(void *userdata, json_t **ret) {
    Walk *walk = userdata;

    if (walk->at == json_array_size(walk->array))
        return 0;
    *ret = json_incref(json_array_get(walk->array, walk->at++));
    return 1;
}

static void ask_walk_free(void *userdata) {
    Walk *walk = userdata;

    json_decref(walk->array);
    free(walk);
}

int call_stream_array(Call *call, json_t *array) {
    Walk *walk = array ? calloc(1, sizeof(*walk)) : NULL;

    if (!walk) {
        json_decref(array);
        return -ENOMEM;
    }
    walk->array = array;
    return call_stream(call, ask_next_session, ask_walk_free, walk);
}

int call_fail_permission(Call *call) {
    return call_fail(call, "org.varlink.service.PermissionDenied", NULL);
}

int call_fail_reason(Call *call, int error, const char *reason) {
    return call_fail(
        call, "Failed",
        json_pack("{s:o}", "reason", answer_text(reason && *reason ? reason : strerror(-error))));
}

int call_fail_busy(Call *call) {
    return call_fail(call, "Busy", json_pack("{s:i}", "retryAfterMs", BUSY_MS));
}

int call_fail_session(Call *call, const char *error, const char *session) {
    return call_fail(call, error, json_pack("{s:o}", "session", answer_echo(session)));
}
