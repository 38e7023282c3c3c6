/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "s3/s3-state.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "protocol/value.h"
#include "util/file.h"
#include "util/text.h"

/*
 * The state as JSON: numbers of nanoseconds and counts, a key, an id, and names of snapshots. The
 * file is ours, and may be damaged all the same, so each value is checked; a damaged one counts as
 * none, and costs uploads that were made before.
 */

enum { S3_STATE_FILE_MAX = 1 << 20, S3_STATE_VERSION = 1 };

/* clang-format off */
static const struct {
    const char *name;
    size_t offset;
} s3_state_counts[] = {
    { "until_ns",        offsetof(S3State, until_ns) },
    { "objects",         offsetof(S3State, counters.objects) },
    { "requests",        offsetof(S3State, counters.requests) },
    { "bytes",           offsetof(S3State, counters.bytes) },
    { "samples",         offsetof(S3State, counters.samples) },
    { "retries",         offsetof(S3State, counters.retries) },
    { "refused",         offsetof(S3State, counters.refused) },
    { "refused_samples", offsetof(S3State, counters.refused_samples) },
    { "expired_ns",      offsetof(S3State, counters.expired_ns) },
    { "missing_ns",      offsetof(S3State, counters.missing_ns) },
    { "deleted_ns",      offsetof(S3State, counters.deleted_ns) },
    { "repeated",        offsetof(S3State, counters.repeated) },
    { "last_success_ns", offsetof(S3State, counters.last_success_ns) },
};
/* clang-format on */

void s3_state_done(S3State *state) {
    free(state->done);
    *state = (S3State){};
}

static S3DoneSnapshot *s3_state_find(S3State *state, const char *name, uint64_t created_us) {
    for (size_t i = 0; i < state->n_done; i++)
        if (state->done[i].created_us == created_us && strcmp(state->done[i].name, name) == 0)
            return &state->done[i];
    return NULL;
}

bool s3_state_has_snapshot(S3State *state, const char *name, uint64_t created_us) {
    S3DoneSnapshot *found = s3_state_find(state, name, created_us);

    if (found)
        found->is_listed = true;
    return found != NULL;
}

int s3_state_add_snapshot(S3State *state, const char *name, uint64_t created_us) {
    S3DoneSnapshot *longer;

    if (state->n_done >= S3_SNAPSHOTS_MAX)
        return -ENOSPC;
    longer = reallocarray(state->done, state->n_done + 1, sizeof(*longer));
    if (!longer)
        return -ENOMEM;
    state->done = longer;
    longer += state->n_done++;
    *longer = (S3DoneSnapshot){.created_us = created_us, .is_listed = true};
    (void)snprintf(longer->name, sizeof(longer->name), "%s", name);
    return 0;
}

void s3_state_begin_list(S3State *state) {
    for (size_t i = 0; i < state->n_done; i++)
        state->done[i].is_listed = false;
}

void s3_state_end_list(S3State *state) {
    size_t n = 0;

    for (size_t i = 0; i < state->n_done; i++)
        if (state->done[i].is_listed)
            state->done[n++] = state->done[i];
    state->n_done = n;
}

static int s3_state_take_text(const json_t *root, const char *name, char *to, size_t size) {
    const char *text = json_string_value(json_object_get(root, name));

    if (!text || strlen(text) >= size)
        return -EBADMSG;
    memcpy(to, text, strlen(text) + 1);
    return 0;
}

static int s3_state_take_snapshots(const json_t *root, S3State *state) {
    const json_t *list = json_object_get(root, "snapshots"), *row;
    char name[S3_NAME_MAX];
    size_t i;
    int r = json_is_array(list) ? 0 : -EBADMSG;

    json_array_foreach(list, i, row) {
        const json_t *created = json_object_get(row, "created_us");

        if (r == 0)
            r = s3_state_take_text(row, "name", name, sizeof(name));
        if (r == 0 && (!json_is_integer(created) || json_integer_value(created) < 0))
            r = -EBADMSG;
        if (r == 0)
            r = s3_state_add_snapshot(state, name, (uint64_t)json_integer_value(created));
    }
    return r;
}

/* A state of an earlier version has none: it uploaded in order of time. */
static int s3_state_take_unsent(const json_t *root, RangeList *ret) {
    const json_t *list = json_object_get(root, "unsent"), *row;
    size_t i;

    if (json_array_size(list) > RANGES_MAX)
        return -EBADMSG;
    json_array_foreach(list, i, row) {
        json_int_t since_ns, until_ns;

        if (json_unpack((json_t *)row, "[II!]", &since_ns, &until_ns) < 0 || since_ns < 0 ||
            until_ns < 0)
            return -EBADMSG;
        ret->items[ret->n++] = (Range){(uint64_t)since_ns, (uint64_t)until_ns};
    }
    return range_list_is_valid(ret) ? 0 : -EBADMSG;
}

static int s3_state_take(const json_t *root, S3State *state) {
    int r = json_integer_value(json_object_get(root, "version")) == S3_STATE_VERSION ? 0 : -EBADMSG;

    for (size_t i = 0; i < ARRAY_SIZE(s3_state_counts) && r == 0; i++) {
        const json_t *value = json_object_get(root, s3_state_counts[i].name);

        if (!json_is_integer(value) || json_integer_value(value) < 0)
            r = -EBADMSG;
        else
            *(uint64_t *)((char *)state + s3_state_counts[i].offset) =
                (uint64_t)json_integer_value(value);
    }
    if (r == 0)
        r = s3_state_take_unsent(root, &state->unsent);
    if (r == 0)
        r = s3_state_take_text(root, "key", state->key, sizeof(state->key));
    if (r == 0)
        r = s3_state_take_text(root, "upload_id", state->upload_id, sizeof(state->upload_id));
    state->is_multipart = json_is_true(json_object_get(root, "multipart"));
    return r == 0 ? s3_state_take_snapshots(root, state) : r;
}

int s3_state_load(const char *path, S3State *ret) {
    _cleanup_(s3_state_done) S3State state = {};
    _cleanup_free_ char *text = malloc(S3_STATE_FILE_MAX);
    _cleanup_json_ json_t *root = NULL;
    int r = text ? file_read_text(path, text, S3_STATE_FILE_MAX) : -ENOMEM;

    if (r < 0)
        return r == -EFBIG ? -EBADMSG : r;
    root = json_loadb(text, (size_t)r, JSON_REJECT_DUPLICATES, NULL);
    r = root ? s3_state_take(root, &state) : -EBADMSG;
    if (r < 0)
        return r == -ENOMEM ? r : -EBADMSG;
    *ret = state;
    state = (S3State){};
    return 0;
}

static json_t *s3_state_json(const S3State *state) {
    json_t *root = json_object(), *list = json_array(), *unsent = json_array();

    value_set(&root, "version", json_integer(S3_STATE_VERSION));
    for (size_t i = 0; i < ARRAY_SIZE(s3_state_counts); i++)
        value_set(&root, s3_state_counts[i].name,
                  json_integer((json_int_t) * (const uint64_t *)((const char *)state +
                                                                 s3_state_counts[i].offset)));
    for (size_t i = 0; i < state->unsent.n; i++)
        value_append(&unsent, json_pack("[II]", (json_int_t)state->unsent.items[i].since_ns,
                                        (json_int_t)state->unsent.items[i].until_ns));
    value_set(&root, "unsent", unsent);
    value_set(&root, "key", json_string(state->key));
    value_set(&root, "multipart", json_boolean(state->is_multipart));
    value_set(&root, "upload_id", json_string(state->upload_id));
    for (size_t i = 0; i < state->n_done; i++)
        value_append(&list, json_pack("{ss sI}", "name", state->done[i].name, "created_us",
                                      (json_int_t)state->done[i].created_us));
    value_set(&root, "snapshots", list);
    return root;
}

int s3_state_print(const S3State *state, Buffer *out) {
    _cleanup_json_ json_t *root = s3_state_json(state);
    _cleanup_free_ char *text = root ? json_dumps(root, JSON_COMPACT) : NULL;

    if (!text)
        return -ENOMEM;
    text_puts(out, text);
    return buffer_error(out);
}
