/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/reader/reader-private.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

/*
 * The front of a recording: the magic, which gives version and byte order, then for a file its
 * header, the attrs with their ids, the event names of PERFFILE, the table of features. Any offset
 * may point anywhere; a section that does not fit into the file is reported as damage and ignored.
 */

enum {
    SECTION_SIZE = 16,    /* struct perf_file_section */
    HEADER_SIZE_OLD = 72, /* before features were introduced */
    EVENT_TYPE_SIZE = 72, /* struct perf_trace_event_type */
    ATTR_BYTES_MAX = 4096,
    IDS_AT_ONCE = 512,
};

typedef struct Section {
    uint64_t offset, size;
} Section;

typedef struct FileHeader {
    uint64_t size, attr_size;
    Section attrs, data, event_types;
    bool bits[PD_FEATURE_BITS];
} FileHeader;

void why_set(PdDamage *why, uint64_t offset, const char *format, ...) {
    va_list ap;

    if (!why)
        return;
    *why = (PdDamage){.offset = offset};
    va_start(ap, format);
    vsnprintf(why->text, sizeof(why->text), format, ap);
    va_end(ap);
}

/* The magic PERFFILE is the same in both byte orders; there the size after it decides. */
static bool reader_header_magic(PdHeader *h, const uint8_t *p) {
    uint64_t magic = load_u64(p, false), size = load_u64(p + 8, false);

    h->magic_version = 2;
    if (magic == PD_MAGIC_2)
        h->swap = false;
    else if (magic == bswap_64(PD_MAGIC_2))
        h->swap = true;
    else if (memcmp(p, "PERFFILE", 8) == 0) {
        h->magic_version = 1;
        h->swap = size > UINT16_MAX && bswap_64(size) <= UINT16_MAX;
    } else if (memcmp(p, "ELIFFREP", 8) == 0) {
        h->magic_version = 1;
        h->swap = size > UINT16_MAX;
    } else
        return false;
    h->big_endian = h->swap != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
    return true;
}

static Section reader_header_load_section(const uint8_t *p, bool swap) {
    return (Section){.offset = load_u64(p, swap), .size = load_u64(p + 8, swap)};
}

/*
 * The bitmap is an array of longs, and the file does not contain the size of a long. In little
 * endian this does not matter. In big endian the words are taken as 32-bit ones if only that
 * reading has HOSTNAME set, which every recorder writes.
 */
static void reader_header_load_bitmap(bool *bits, const uint8_t *p, const PdHeader *h) {
    static const size_t hostname = PD_FEATURE_HOSTNAME;
    size_t word = 8;

    if (!h->big_endian) {
        for (size_t i = 0; i < PD_FEATURE_BITS; i++)
            bits[i] = p[i / 8] >> i % 8 & 1;
        return;
    }
    if (!(p[7] >> hostname & 1) && (p[3] >> hostname & 1))
        word = 4;
    for (size_t i = 0; i < PD_FEATURE_BITS; i++) {
        size_t byte = i / 8;

        bits[i] = p[byte - byte % word + (word - 1 - byte % word)] >> i % 8 & 1;
    }
}

static int reader_header_load_file(PdReader *r, FileHeader *ret, PdDamage *why) {
    uint8_t p[PD_HEADER_SIZE] = {};
    bool swap = r->header.swap;
    FileHeader h = {};

    if (r->main.stream) {
        why_set(why, 0, "a recording in file layout cannot be read from a pipe");
        return -ESPIPE;
    }
    if (source_read_at(&r->main, 8, p + 8, 8) < 0) {
        why_set(why, 0, "the header is cut off");
        return -EBADMSG;
    }
    h.size = load_u64(p + 8, swap);
    if ((h.size != HEADER_SIZE_OLD && h.size < PD_HEADER_SIZE) || h.size > r->main.size) {
        why_set(why, 8, "no perf.data has a header of %llu bytes", (unsigned long long)h.size);
        return -EBADMSG;
    }
    if (source_read_at(&r->main, 0, p, MIN(h.size, (uint64_t)PD_HEADER_SIZE)) < 0) {
        why_set(why, r->main.size, "the header is cut off");
        return -EBADMSG;
    }
    h.attr_size = load_u64(p + 16, swap);
    h.attrs = reader_header_load_section(p + 24, swap);
    h.data = reader_header_load_section(p + 40, swap);
    h.event_types = reader_header_load_section(p + 56, swap);
    if (h.size > HEADER_SIZE_OLD)
        reader_header_load_bitmap(h.bits, p + HEADER_SIZE_OLD, &r->header);
    *ret = h;
    return 0;
}

/* Reads the ids of an event piece by piece; their number is checked against the file size first. */
static int reader_header_read_ids(PdReader *r, PdEvent *event, Section ids) {
    bool swap = r->header.swap;
    uint64_t n = ids.size / 8, raw[IDS_AT_ONCE];
    int rc;

    if (ids.offset > r->main.size || ids.size > r->main.size - ids.offset) {
        reader_cut_off(r, false, ids.offset, "the ids of event %u lie beyond the end of the file",
                       event->index);
        return 0;
    }
    while (n > 0) {
        size_t k = (size_t)MIN(n, (uint64_t)IDS_AT_ONCE);

        rc = source_read_at(&r->main, ids.offset, raw, k * 8);
        if (rc < 0)
            return rc == -ENODATA ? 0 : rc;
        for (size_t i = 0; i < k; i++)
            raw[i] = swap ? bswap_64(raw[i]) : raw[i];
        rc = pd_events_add_ids(r->events, event, raw, k);
        if (rc == -E2BIG) {
            reader_damage(r, false, ids.offset, "there are more ids than any recording has");
            return 0;
        }
        if (rc < 0)
            return rc;
        ids.offset += k * 8;
        n -= k;
    }
    return 0;
}

static int reader_header_read_attr(PdReader *r, uint64_t offset, uint64_t attr_size) {
    uint8_t bytes[ATTR_BYTES_MAX], section[SECTION_SIZE];
    bool swap = r->header.swap;
    Bytes raw = {.data = bytes, .size = (size_t)MIN(attr_size, (uint64_t)sizeof(bytes))};
    PdEvent *event;
    PdAttr attr;
    int rc;

    rc = source_read_at(&r->main, offset, bytes, raw.size);
    if (rc == 0)
        rc = source_read_at(&r->main, offset + attr_size, section, sizeof(section));
    if (rc < 0)
        return rc;
    rc = pd_attr_parse(&attr, raw, swap);
    if (rc < 0)
        return rc;
    if (attr.size >= PD_ATTR_SIZE_MIN)
        raw.size = MIN(raw.size, (size_t)attr.size);
    rc = pd_events_add(r->events, &attr, raw, NULL, 0, &event);
    if (rc < 0)
        return rc;
    return reader_header_read_ids(r, event, reader_header_load_section(section, swap));
}

static int reader_header_read_attrs(PdReader *r, const FileHeader *h) {
    uint64_t n, end;

    if (h->attrs.size == 0)
        return 0;
    if (h->attr_size < PD_ATTR_SIZE_MIN + SECTION_SIZE || h->attr_size > h->attrs.size) {
        reader_damage(r, false, 16, "the entries of the attr section cannot be %llu bytes long",
                      (unsigned long long)h->attr_size);
        return 0;
    }
    if (__builtin_add_overflow(h->attrs.offset, h->attrs.size, &end)) {
        reader_cut_off(r, false, 24, "the attr section lies beyond the end of the file");
        return 0;
    }
    if (h->attrs.size % h->attr_size != 0)
        reader_damage(r, false, 32, "the attr section holds no whole number of entries");
    n = h->attrs.size / h->attr_size;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t at = h->attrs.offset + i * h->attr_size;
        int rc = reader_header_read_attr(r, at, h->attr_size - SECTION_SIZE);

        if (rc == -ENODATA || rc == -EBADMSG) {
            reader_cut_off(r, false, at, "the attr section lies beyond the end of the file");
            return 0;
        }
        if (rc == -E2BIG) {
            reader_damage(r, false, at, "there are more events than any recording has");
            return 0;
        }
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int reader_header_read_event_types(PdReader *r, Section types) {
    uint64_t n = MIN(types.size / EVENT_TYPE_SIZE, (uint64_t)EVENT_TYPES_MAX);
    uint8_t entry[EVENT_TYPE_SIZE];

    for (uint64_t i = 0; i < n; i++) {
        uint64_t at;
        int rc;

        if (__builtin_add_overflow(types.offset, i * EVENT_TYPE_SIZE, &at) ||
            source_read_at(&r->main, at, entry, sizeof(entry)) < 0) {
            reader_cut_off(r, false, types.offset, "the names of event types are cut off");
            return 0;
        }
        rc = intake_event_type(r, load_u64(entry, r->header.swap),
                               (Bytes){.data = entry + 8, .size = sizeof(entry) - 8});
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* Finds the records, and whether the recorder lived long enough to write their size. */
static void reader_header_find_data(PdReader *r, const FileHeader *h) {
    uint64_t end;

    r->header.data_offset = h->data.offset;
    r->header.data_size = h->data.size;
    if (__builtin_add_overflow(h->data.offset, h->data.size, &end))
        end = UINT64_MAX;
    if (h->data.size == 0 && h->data.offset >= h->size &&
        !feature_table_fits(r, h->bits, h->data.offset)) {
        r->header.unfinished = true;
        r->header.data_size = r->main.size > h->data.offset ? r->main.size - h->data.offset : 0;
        end = UINT64_MAX;
        reader_damage(r, false, h->data.offset,
                      "the recorder did not live to finish the file: its features are not known");
    } else if (end > r->main.size)
        reader_cut_off(r, false, r->main.size, "the file ends before its data does");
    r->data_end = end;
    source_seek(&r->main, h->data.offset, end);
}

static int reader_header_open_file(PdReader *r, PdDamage *why) {
    FileHeader h;
    int rc;

    rc = reader_header_load_file(r, &h, why);
    if (rc < 0)
        return rc;
    r->header.mode = PD_MODE_FILE;
    r->header.attr_size = h.attr_size;
    rc = reader_header_read_attrs(r, &h);
    if (rc < 0)
        return rc;
    rc = reader_header_read_event_types(r, h.event_types);
    if (rc < 0)
        return rc;
    reader_header_find_data(r, &h);
    if (!r->header.unfinished)
        feature_table_read(r, h.bits);
    return 0;
}

int header_open(PdReader *r, PdDamage *why) {
    int rc;

    rc = source_want(&r->main, PD_PIPE_HEADER_SIZE);
    if (rc < 0) {
        why_set(why, 0, "its first bytes could not be read");
        return rc;
    }
    if (source_left(&r->main) < PD_PIPE_HEADER_SIZE) {
        why_set(why, 0, source_left(&r->main) == 0 ? "it is empty" : "the header is cut off");
        return -EBADMSG;
    }
    if (!reader_header_magic(&r->header, source_at(&r->main))) {
        why_set(why, 0, "it does not begin as a perf.data does");
        return -EBADMSG;
    }
    if (load_u64(source_at(&r->main) + 8, r->header.swap) != PD_PIPE_HEADER_SIZE)
        return reader_header_open_file(r, why);
    r->header.mode = PD_MODE_PIPE;
    r->header.data_offset = PD_PIPE_HEADER_SIZE;
    r->data_end = UINT64_MAX;
    return source_skip(&r->main, PD_PIPE_HEADER_SIZE);
}
