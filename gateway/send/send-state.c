/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "send/send-state.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "util/text.h"

/*
 * The state of a destination as JSON. Whoever can write to the folder can write anything here, so
 * each number is checked, and a list that is not as we write it makes the whole file damaged:
 * half of a state would lose intervals without a word.
 */

/* Times up to the year 2262, which also fit in the integers of JSON. */
#define STATE_NUMBER_MAX ((uint64_t)INT64_MAX)

typedef struct StateCounter {
    const char *name;
    size_t offset;
} StateCounter;

#define COUNTER(name, member)                                                                      \
    { name, offsetof(SendCounters, member) }

/* clang-format off */
static const StateCounter state_counters[] = {
    COUNTER("sentIntervals",    sent_intervals),
    COUNTER("sentRequests",     sent_requests),
    COUNTER("sentBytes",        sent_bytes),
    COUNTER("sentSamples",      sent_samples),
    COUNTER("refusedIntervals", refused_intervals),
    COUNTER("refusedSamples",   refused_samples),
    COUNTER("droppedSamples",   dropped_samples),
    COUNTER("otherSamples",     other_samples),
    COUNTER("thinnedIntervals", thinned_intervals),
    COUNTER("expiredNs",        expired_ns),
    COUNTER("missingNs",        missing_ns),
    COUNTER("deletedNs",        deleted_ns),
    COUNTER("repeatedRequests", repeated_requests),
    COUNTER("retries",          retries),
};
/* clang-format on */

static bool send_state_number(const json_t *value, uint64_t *ret) {
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return false;
    *ret = (uint64_t)json_integer_value(value);
    return true;
}

/* A list of exactly n numbers. */
static bool send_state_numbers(const json_t *list, uint64_t *ret, size_t n) {
    if (!json_is_array(list) || json_array_size(list) != n)
        return false;
    for (size_t i = 0; i < n; i++)
        if (!send_state_number(json_array_get(list, i), &ret[i]))
            return false;
    return true;
}

static const char *send_state_parse_ranges(const json_t *list, RangeList *ret) {
    if (!json_is_array(list) || json_array_size(list) > RANGES_MAX)
        return "it has no list of ranges, or too many";
    ret->n = json_array_size(list);
    for (size_t i = 0; i < ret->n; i++) {
        uint64_t ends[2];

        if (!send_state_numbers(json_array_get(list, i), ends, 2))
            return "a range is not two times";
        ret->items[i] = (Range){ends[0], ends[1]};
    }
    return range_list_is_valid(ret) ? NULL : "its ranges are not in order";
}

static const char *send_state_parse_partials(const json_t *list, SendState *ret) {
    if (!json_is_array(list) || json_array_size(list) > STATE_PARTIALS_MAX)
        return "it has no list of intervals in progress, or too many";
    ret->n_partials = json_array_size(list);
    for (size_t i = 0; i < ret->n_partials; i++) {
        uint64_t v[4];

        if (!send_state_numbers(json_array_get(list, i), v, 4) || v[0] >= v[1])
            return "an interval in progress is not a span, a number and a hash";
        ret->partials[i] = (SendPartial){.range = {v[0], v[1]}, .n = v[2], .hash = v[3]};
    }
    return NULL;
}

static const char *send_state_parse_object(const json_t *object, SendState *ret) {
    const json_t *counters = json_object_get(object, "counters");
    const json_t *high = json_object_get(object, "highNs");
    const char *problem;
    uint64_t version;

    if (!send_state_number(json_object_get(object, "version"), &version) || version != 1)
        return "it is of another version";
    if (!send_state_number(json_object_get(object, "liveNs"), &ret->live_ns) ||
        !send_state_number(json_object_get(object, "lastSuccessNs"), &ret->last_success_ns))
        return "it has no position";
    /* A file of an earlier version has none. */
    if (high && !send_state_number(high, &ret->high_ns))
        return "its newest position is not a number";
    ret->high_ns = MAX(ret->high_ns, ret->live_ns);
    problem = send_state_parse_ranges(json_object_get(object, "unsent"), &ret->unsent);
    if (!problem)
        problem = send_state_parse_partials(json_object_get(object, "partials"), ret);
    if (problem)
        return problem;
    for (size_t i = 0; i < ARRAY_SIZE(state_counters); i++) {
        uint64_t *to = (uint64_t *)((uint8_t *)&ret->counters + state_counters[i].offset);
        const json_t *value = json_object_get(counters, state_counters[i].name);

        /* A later version may count more than the one that wrote the file. */
        if (value && !send_state_number(value, to))
            return "a counter is not a number";
    }
    return NULL;
}

int send_state_parse(Bytes text, SendState *ret, const char **ret_problem) {
    _cleanup_free_ SendState *state = calloc(1, sizeof(*state));
    json_t *object;

    if (!state)
        return -ENOMEM;
    object = json_loadb((const char *)text.data, text.size, JSON_REJECT_DUPLICATES, NULL);
    *ret_problem =
        json_is_object(object) ? send_state_parse_object(object, state) : "it is not JSON";
    json_decref(object);
    if (*ret_problem)
        return -EBADMSG;
    *ret = *state;
    return 0;
}

static void send_state_forget(SendState *state, size_t at) {
    memmove(state->partials + at, state->partials + at + 1,
            (state->n_partials - at - 1) * sizeof(*state->partials));
    state->n_partials--;
}

static void send_state_forget_range(SendState *state, Range range) {
    for (size_t i = 0; i < state->n_partials;)
        if (range_meets(state->partials[i].range, range))
            send_state_forget(state, i);
        else
            i++;
}

void send_state_begin_anew(SendState *state, Range range) {
    for (size_t i = 0; i < state->n_partials; i++)
        if (range_meets(state->partials[i].range, range))
            state->partials[i].hash = 0;
}

void send_state_put_partial(SendState *state, const SendPartial *partial) {
    send_state_forget_range(state, partial->range);
    if (state->n_partials == STATE_PARTIALS_MAX)
        send_state_forget(state, 0);
    state->partials[state->n_partials++] = *partial;
}

void send_state_settle(SendState *state, Range range) {
    state->counters.expired_ns += range_list_remove(&state->unsent, range);
    send_state_forget_range(state, range);
}

const SendPartial *send_state_partial(const SendState *state, Range range) {
    for (size_t i = 0; i < state->n_partials; i++)
        if (state->partials[i].range.since_ns == range.since_ns &&
            state->partials[i].range.until_ns == range.until_ns)
            return &state->partials[i];
    return NULL;
}

/* No number may be one that the parser refuses. */
static void send_state_put_u64(Buffer *out, const char *before, uint64_t v) {
    text_puts(out, before);
    text_u64(out, MIN(v, STATE_NUMBER_MAX));
}

int send_state_print(const SendState *state, Buffer *out) {
    send_state_put_u64(out, "{\"version\": 1,\n \"liveNs\": ", state->live_ns);
    send_state_put_u64(out, ",\n \"highNs\": ", state->high_ns);
    send_state_put_u64(out, ",\n \"lastSuccessNs\": ", state->last_success_ns);
    text_puts(out, ",\n \"unsent\": [");
    for (size_t i = 0; i < state->unsent.n; i++) {
        send_state_put_u64(out, i > 0 ? ", [" : "[", state->unsent.items[i].since_ns);
        send_state_put_u64(out, ", ", state->unsent.items[i].until_ns);
        text_putc(out, ']');
    }
    text_puts(out, "],\n \"partials\": [");
    for (size_t i = 0; i < state->n_partials; i++) {
        const SendPartial *partial = &state->partials[i];

        send_state_put_u64(out, i > 0 ? ", [" : "[", partial->range.since_ns);
        send_state_put_u64(out, ", ", partial->range.until_ns);
        send_state_put_u64(out, ", ", partial->n);
        send_state_put_u64(out, ", ", partial->hash);
        text_putc(out, ']');
    }
    text_puts(out, "],\n \"counters\": {");
    for (size_t i = 0; i < ARRAY_SIZE(state_counters); i++) {
        const uint8_t *base = (const uint8_t *)&state->counters;

        text_printf(out, "%s\n  \"%s\": ", i > 0 ? "," : "", state_counters[i].name);
        send_state_put_u64(out, "", *(const uint64_t *)(base + state_counters[i].offset));
    }
    text_puts(out, "}}\n");
    return buffer_error(out);
}
