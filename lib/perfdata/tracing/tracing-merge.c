/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/tracing/tracing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/buffer.h"
#include "util/macro.h"

/*
 * Two recordings of one kernel describe tracepoints in the same way, but each has only its own
 * tracepoints and the command lines of its time, so their blobs always differ. A blob is split into
 * its sections; the result has the head and the rest of the first blob, and for each system the
 * formats of both, each once.
 *
 * The first two lines of a format, name and ID, identify its tracepoint.
 */

enum {
    SYSTEMS_MAX = 4096,
    FORMATS_MAX = 65536,
};

typedef struct Format {
    Bytes system, text;
} Format;

typedef struct Blob {
    Bytes head;      /* everything before the number of ftrace's own formats */
    Bytes ftrace;    /* including their number */
    Format *formats; /* of all systems */
    size_t n, allocated;
    Bytes rest; /* kallsyms, printk formats, command lines */
    bool swap;
} Blob;

static void tracing_merge_blob_done(Blob *b) {
    free(b->formats);
    b->formats = NULL;
}

static Bytes tracing_merge_between(const uint8_t *start, const Cursor *c) {
    return (Bytes){.data = start, .size = (size_t)(c->at - start)};
}

static void tracing_merge_skip_head(Cursor *c) {
    cursor_take(c, 3 + strlen("tracing"));
    cursor_string(c);
    c->swap = cursor_u8(c) != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
    cursor_u8(c);
    cursor_u32(c);
    cursor_take(c, sizeof("header_page"));
    cursor_take(c, cursor_u64(c));
    cursor_take(c, sizeof("header_event"));
    cursor_take(c, cursor_u64(c));
}

static int tracing_merge_add_format(Blob *b, Format format) {
    if (b->n == FORMATS_MAX)
        return -E2BIG;
    if (b->n == b->allocated) {
        size_t n = MAX(b->allocated * 2, (size_t)64);
        Format *grown = reallocarray(b->formats, n, sizeof(*grown));

        if (!grown)
            return -ENOMEM;
        b->formats = grown;
        b->allocated = n;
    }
    b->formats[b->n++] = format;
    return 0;
}

static int tracing_merge_take_system(Blob *b, Cursor *c) {
    Bytes system = cursor_string(c);
    uint32_t n = cursor_u32(c);

    for (uint32_t i = 0; i < n; i++) {
        Bytes text = cursor_bytes(c, cursor_u64(c));
        int r;

        if (c->failed)
            return -EBADMSG;
        r = tracing_merge_add_format(b, (Format){.system = system, .text = text});
        if (r < 0)
            return r;
    }
    return c->failed ? -EBADMSG : 0;
}

static int tracing_merge_take_blob(Bytes bytes, Blob *b) {
    Cursor c = cursor_of(bytes.data, bytes.size, false);
    const uint8_t *start = c.at;
    uint32_t n;

    tracing_merge_skip_head(&c);
    b->swap = c.swap;
    b->head = tracing_merge_between(start, &c);
    start = c.at;
    n = cursor_u32(&c);
    for (uint32_t i = 0; i < n && !c.failed; i++)
        cursor_take(&c, cursor_u64(&c));
    b->ftrace = tracing_merge_between(start, &c);
    n = cursor_u32(&c);
    if (c.failed || n > SYSTEMS_MAX)
        return -EBADMSG;
    for (uint32_t i = 0; i < n; i++) {
        int r = tracing_merge_take_system(b, &c);

        if (r < 0)
            return r;
    }
    b->rest = tracing_merge_between(c.at, &(Cursor){.at = c.end});
    return 0;
}

/* "name: x\nID: 12\n" */
static Bytes tracing_merge_subject_of(Bytes text) {
    const uint8_t *at = text.data, *end = text.data + text.size;

    for (unsigned line = 0; line < 2 && at < end; line++) {
        const uint8_t *newline = memchr(at, '\n', (size_t)(end - at));

        at = newline ? newline + 1 : end;
    }
    return (Bytes){.data = text.data, .size = (size_t)(at - text.data)};
}

static int tracing_merge_compare_bytes(Bytes a, Bytes b) {
    int d = memcmp(a.data, b.data, MIN(a.size, b.size));

    return d != 0 ? d : a.size < b.size ? -1 : a.size > b.size;
}

static int tracing_merge_by_subject(const void *a, const void *b) {
    const Format *x = a, *y = b;
    int d = tracing_merge_compare_bytes(x->system, y->system);

    return d != 0 ? d
                  : tracing_merge_compare_bytes(tracing_merge_subject_of(x->text),
                                                tracing_merge_subject_of(y->text));
}

/* Sorts them and removes duplicates. -EEXIST: a tracepoint has two different formats. */
static int tracing_merge_unite(Blob *b) {
    size_t kept = 0;

    if (b->n == 0)
        return 0;
    qsort(b->formats, b->n, sizeof(*b->formats), tracing_merge_by_subject);
    for (size_t i = 0; i < b->n; i++) {
        if (kept == 0 || tracing_merge_by_subject(&b->formats[kept - 1], &b->formats[i]) != 0)
            b->formats[kept++] = b->formats[i];
        else if (!bytes_equal(b->formats[kept - 1].text, b->formats[i].text))
            return -EEXIST;
    }
    b->n = kept;
    return 0;
}

static size_t tracing_merge_end_of_system(const Blob *b, size_t start) {
    size_t end = start;

    while (end < b->n && bytes_equal(b->formats[end].system, b->formats[start].system))
        end++;
    return end;
}

static void tracing_merge_write_systems(const Blob *b, Buffer *out) {
    uint32_t n = 0;

    for (size_t i = 0; i < b->n; i = tracing_merge_end_of_system(b, i))
        n++;
    buffer_u32(out, n, b->swap);
    for (size_t i = 0, end; i < b->n; i = end) {
        end = tracing_merge_end_of_system(b, i);
        buffer_append(out, b->formats[i].system.data, b->formats[i].system.size);
        buffer_zero(out, 1);
        buffer_u32(out, (uint32_t)(end - i), b->swap);
        for (size_t k = i; k < end; k++) {
            buffer_u64(out, b->formats[k].text.size, b->swap);
            buffer_append(out, b->formats[k].text.data, b->formats[k].text.size);
        }
    }
}

int pd_tracing_merge(Bytes first, Bytes second, Buffer *out) {
    _cleanup_(tracing_merge_blob_done) Blob a = {}, b = {};
    int r = tracing_merge_take_blob(first, &a);

    if (r == 0)
        r = tracing_merge_take_blob(second, &b);
    if (r == 0 && !(bytes_equal(a.head, b.head) && bytes_equal(a.ftrace, b.ftrace)))
        r = -EEXIST;
    for (size_t i = 0; r == 0 && i < b.n; i++)
        r = tracing_merge_add_format(&a, b.formats[i]);
    if (r == 0)
        r = tracing_merge_unite(&a);
    if (r < 0)
        return r;
    buffer_append(out, a.head.data, a.head.size);
    buffer_append(out, a.ftrace.data, a.ftrace.size);
    tracing_merge_write_systems(&a, out);
    buffer_append(out, a.rest.data, a.rest.size);
    return buffer_error(out);
}
