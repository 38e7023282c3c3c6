/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/tracing/tracing.h"

#include <errno.h>
#include <stdlib.h>

#include "perfdata/tracing/tracing-format.h"
#include "util/macro.h"

/*
 * The container of the tracing data: what perf copies from tracefs, in the layout of trace.dat. A
 * head with byte order and sizes, the formats of ftrace's own events, then system by system those
 * of the recorded tracepoints. What follows (kallsyms, printk formats, command lines) has no names
 * for raw data and is not read. Numbers are in the byte order of the head. If the blob is cut off,
 * the formats before that point are valid.
 */

enum { LONG_SIZE_MAX = 8 };

struct PdTracing {
    TracingFormat *formats; /* by id, ascending */
    size_t n, allocated;
    unsigned long_size;
};

PdTracing *pd_tracing_free(PdTracing *t) {
    if (!t)
        return NULL;
    for (size_t i = 0; i < t->n; i++)
        tracing_format_done(&t->formats[i]);
    free(t->formats);
    free(t);
    return NULL;
}

/* Memory grows only with formats that were read, each of which is in the blob. */
static int tracing_make_room(PdTracing *t) {
    size_t n = MAX(t->allocated * 2, (size_t)16);
    TracingFormat *p;

    if (t->n < t->allocated)
        return 0;
    p = reallocarray(t->formats, n, sizeof(*p));
    if (!p)
        return -ENOMEM;
    t->formats = p;
    t->allocated = n;
    return 0;
}

static int tracing_read_format(PdTracing *t, Cursor *c, Bytes system) {
    Bytes text = cursor_bytes(c, cursor_u64(c));
    int r;

    if (c->failed)
        return -EBADMSG;
    r = tracing_make_room(t);
    if (r < 0)
        return r;
    r = tracing_format_parse(system, text, t->long_size, &t->formats[t->n]);
    if (r == 0)
        t->n++;
    return r == -ENOMEM ? r : 0;
}

/* -EBADMSG if the blob ends too early. */
static int tracing_read_formats(PdTracing *t, Cursor *c, Bytes system) {
    uint32_t n = cursor_u32(c);
    int r = 0;

    for (uint32_t i = 0; i < n && r == 0; i++)
        r = tracing_read_format(t, c, system);
    return r;
}

static int tracing_read_systems(PdTracing *t, Cursor *c) {
    uint32_t n = cursor_u32(c);
    int r = 0;

    for (uint32_t i = 0; i < n && r == 0 && !c->failed; i++) {
        Bytes system = cursor_string(c);

        r = tracing_read_formats(t, c, system);
    }
    return r;
}

static bool tracing_take_word(Cursor *c, const void *word, size_t n) {
    const uint8_t *p = cursor_take(c, n);

    return p && memcmp(p, word, n) == 0;
}

static int tracing_read_head(PdTracing *t, Cursor *c) {
    static const uint8_t magic[] = {23, 8, 68};
    bool big_endian;

    if (!tracing_take_word(c, magic, sizeof(magic)) || !tracing_take_word(c, "tracing", 7))
        return -EBADMSG;
    cursor_string(c);
    big_endian = cursor_u8(c);
    c->swap = big_endian != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
    t->long_size = cursor_u8(c);
    cursor_u32(c);
    if (t->long_size > LONG_SIZE_MAX || !tracing_take_word(c, "header_page", 12))
        return -EBADMSG;
    cursor_bytes(c, cursor_u64(c));
    if (!tracing_take_word(c, "header_event", 13))
        return -EBADMSG;
    cursor_bytes(c, cursor_u64(c));
    return c->failed ? -EBADMSG : 0;
}

static int tracing_compare_ids(const void *pa, const void *pb) {
    const TracingFormat *a = pa, *b = pb;

    return a->id < b->id ? -1 : a->id > b->id;
}

int pd_tracing_new(Bytes blob, PdTracing **ret) {
    _cleanup_(pd_tracing_freep) PdTracing *t = calloc(1, sizeof(*t));
    Cursor c;
    int r;

    if (!t)
        return -ENOMEM;
    if (blob.size == 0)
        return -EBADMSG;
    c = cursor_of(blob.data, blob.size, false);
    r = tracing_read_head(t, &c);
    if (r < 0)
        return r;
    r = tracing_read_formats(t, &c, (Bytes){.data = (const uint8_t *)"ftrace", .size = 6});
    if (r == 0)
        r = tracing_read_systems(t, &c);
    if (r < 0 && r != -EBADMSG)
        return r;
    if (t->n > 0)
        qsort(t->formats, t->n, sizeof(*t->formats), tracing_compare_ids);
    *ret = TAKE_PTR(t);
    return 0;
}

static const TracingFormat *tracing_find(const PdTracing *t, uint64_t id) {
    TracingFormat key = {.id = id};

    return t->n > 0 ? bsearch(&key, t->formats, t->n, sizeof(key), tracing_compare_ids) : NULL;
}

const char *pd_tracing_name(const PdTracing *tracing, uint64_t id) {
    const TracingFormat *format = tracing_find(tracing, id);

    return format ? format->name : NULL;
}

void pd_tracing_describe(const PdTracing *tracing, uint64_t id, Bytes raw, bool swap,
                         Fields *fields) {
    const TracingFormat *format = tracing_find(tracing, id);

    if (format)
        tracing_format_describe(format, raw, swap, fields);
}
