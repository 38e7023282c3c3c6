/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/feature/environment-codec.h"

#include <errno.h>

#include "util/array.h"

/*
 * The steps that code functions are made of. Each step does what the mode asks for; after a failure
 * reading steps return zeros, so the function needs no checks in between. Memory is allocated only
 * for data that the body really has.
 */

void codec_fail(Codec *c, int error) {
    if (!c->error)
        c->error = error;
    cursor_fail(&c->in);
}

void codec_spend(Codec *c, size_t n) {
    if (c->mode != CODEC_READ)
        return;
    if (n > c->budget)
        codec_fail(c, -EBADMSG);
    else
        c->budget -= n;
}

/* Most damage shows up as a cursor that ran out of bytes. */
static bool environment_codec_reading(Codec *c) {
    if (c->in.failed && !c->error)
        c->error = -EBADMSG;
    return !c->error;
}

void codec_u32(Codec *c, uint32_t *v) {
    if (c->mode == CODEC_READ) {
        *v = cursor_u32(&c->in);
        (void)environment_codec_reading(c);
    } else if (c->mode == CODEC_WRITE)
        buffer_u32(c->out, *v, c->swap);
    else
        *v = 0;
}

void codec_u64(Codec *c, uint64_t *v) {
    if (c->mode == CODEC_READ) {
        *v = cursor_u64(&c->in);
        (void)environment_codec_reading(c);
    } else if (c->mode == CODEC_WRITE)
        buffer_u64(c->out, *v, c->swap);
    else
        *v = 0;
}

void codec_u32_is(Codec *c, uint32_t v) {
    uint32_t found = v;

    codec_u32(c, &found);
    if (c->mode == CODEC_READ && found != v)
        codec_fail(c, -EBADMSG);
}

void codec_u64_is(Codec *c, uint64_t v) {
    uint64_t found = v;

    codec_u64(c, &found);
    if (c->mode == CODEC_READ && found != v)
        codec_fail(c, -EBADMSG);
}

static void environment_codec_read_string(Codec *c, char **ret) {
    uint32_t n = cursor_u32(&c->in);
    Bytes bytes = cursor_bytes(&c->in, n);
    char *s;

    codec_spend(c, 1);
    if (!environment_codec_reading(c))
        return;
    s = strndup(n > 0 ? (const char *)bytes.data : "", bytes.size);
    if (!s) {
        codec_fail(c, -ENOMEM);
        return;
    }
    *ret = s;
}

static void environment_codec_write_string(Codec *c, const char *s) {
    size_t n = strlen(s) + 1;
    size_t padded = (n + CODEC_STRING_ALIGN - 1) / CODEC_STRING_ALIGN * CODEC_STRING_ALIGN;

    if (padded > UINT32_MAX) {
        c->out->error = -EOVERFLOW;
        return;
    }
    buffer_u32(c->out, (uint32_t)padded, c->swap);
    buffer_append(c->out, s, n);
    buffer_zero(c->out, padded - n);
}

void codec_string(Codec *c, char **s) {
    if (c->mode == CODEC_READ)
        environment_codec_read_string(c, s);
    else if (c->mode == CODEC_WRITE)
        environment_codec_write_string(c, *s ? *s : "");
    else
        freep(s);
}

void codec_strings(Codec *c, PdStrings *strings) {
    for (size_t i = codec_list(c, &strings->n, &strings->items, sizeof(uint32_t));
         codec_next(c, i, &strings->n, &strings->items); i++)
        codec_string(c, &strings->items[i]);
}

static void environment_codec_read_bytes(Codec *c, uint8_t **ret, size_t n) {
    const uint8_t *from = cursor_take(&c->in, n);

    if (!environment_codec_reading(c) || n == 0)
        return;
    *ret = malloc(n);
    if (!*ret)
        codec_fail(c, -ENOMEM);
    else
        memcpy(*ret, from, n);
}

void codec_bytes(Codec *c, uint8_t **data, size_t *n) {
    if (c->mode == CODEC_READ)
        environment_codec_read_bytes(c, data, *n);
    else if (c->mode == CODEC_WRITE)
        buffer_append(c->out, *data, *n);
    else
        freep(data);
    if (c->mode != CODEC_WRITE && !*data)
        *n = 0;
}

static void environment_codec_read_u64s(Codec *c, uint64_t **ret, size_t n) {
    Bytes from = cursor_array(&c->in, n, sizeof(uint64_t));

    if (!environment_codec_reading(c) || n == 0)
        return;
    *ret = malloc(from.size);
    if (!*ret)
        codec_fail(c, -ENOMEM);
    for (size_t i = 0; *ret && i < n; i++)
        (*ret)[i] = load_u64(from.data + i * sizeof(uint64_t), c->swap);
}

void codec_u64s(Codec *c, uint64_t **words, size_t *n) {
    if (c->mode == CODEC_READ)
        environment_codec_read_u64s(c, words, *n);
    else if (c->mode == CODEC_CLEAR)
        freep(words);
    if (c->mode != CODEC_WRITE && !*words)
        *n = 0;
    for (size_t i = 0; c->mode == CODEC_WRITE && i < *n; i++)
        buffer_u64(c->out, (*words)[i], c->swap);
}

void codec_count_u32(Codec *c, size_t *n) {
    uint32_t v = (uint32_t)*n;

    if (c->mode == CODEC_CLEAR)
        return;
    if (c->mode == CODEC_WRITE && *n > UINT32_MAX)
        c->out->error = -EOVERFLOW;
    codec_u32(c, &v);
    if (c->mode == CODEC_READ)
        *n = v;
}

void codec_count_u64(Codec *c, size_t *n) {
    uint64_t v = *n;

    if (c->mode == CODEC_CLEAR)
        return;
    codec_u64(c, &v);
    if (c->mode == CODEC_READ && v > cursor_left(&c->in))
        codec_fail(c, -EBADMSG);
    if (c->mode == CODEC_READ)
        *n = c->error ? 0 : (size_t)v;
}

size_t codec_begin_sized(Codec *c, size_t *n, void **items, size_t each, size_t least) {
    if (c->mode != CODEC_READ)
        return 0;
    if (*n > cursor_left(&c->in) / least)
        codec_fail(c, -EBADMSG);
    codec_spend(c, *n);
    if (!environment_codec_reading(c))
        *n = 0;
    if (*n == 0)
        return 0;
    *items = calloc(*n, each);
    if (!*items) {
        codec_fail(c, -ENOMEM);
        *n = 0;
    }
    return 0;
}

bool codec_end_items(Codec *c, size_t *n, void **items) {
    if (c->mode == CODEC_CLEAR) {
        freep(items);
        *n = 0;
    }
    return false;
}

void *codec_grow_sized(Codec *c, size_t *n, void **items, size_t each) {
    void *item;

    codec_spend(c, 1);
    if (!environment_codec_reading(c))
        return NULL;
    item = array_grow_sized(items, n, each);
    if (!item)
        codec_fail(c, -ENOMEM);
    return item;
}
