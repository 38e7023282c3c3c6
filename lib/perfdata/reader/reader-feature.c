/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/reader/reader-private.h"

#include <errno.h>

/*
 * The features of a recording as bytes. In a file a table after the data has the position of each,
 * and a feature is read when first requested; in a pipe they come as records and are kept. All kept
 * features together are limited.
 */

enum { ENTRY_SIZE = 16 };

static unsigned reader_feature_count_bits(const bool *bits) {
    unsigned n = 0;

    for (unsigned i = 0; i < PD_FEATURE_BITS; i++)
        n += bits[i];
    return n;
}

bool feature_table_fits(const PdReader *r, const bool *bits, uint64_t offset) {
    uint64_t n = reader_feature_count_bits(bits), least = offset + n * ENTRY_SIZE;
    uint8_t entry[ENTRY_SIZE];

    for (uint64_t i = 0; i < n; i++) {
        uint64_t at, size;

        if (source_read_at(&r->main, offset + i * ENTRY_SIZE, entry, sizeof(entry)) < 0)
            return false;
        at = load_u64(entry, r->header.swap);
        size = load_u64(entry + 8, r->header.swap);
        if (at < least || at > r->main.size || size > r->main.size - at)
            return false;
    }
    return n > 0;
}

void feature_table_read(PdReader *r, const bool *bits) {
    uint64_t offset = r->data_end;
    bool cut = false;

    for (unsigned bit = 0; bit < PD_FEATURE_BITS; bit++) {
        Feature *f = &r->features[bit];
        uint8_t entry[ENTRY_SIZE];

        if (!bits[bit])
            continue;
        if (cut || source_read_at(&r->main, offset, entry, sizeof(entry)) < 0) {
            if (!cut)
                reader_cut_off(r, false, offset, "the table of features is cut off");
            cut = true;
            continue;
        }
        f->present = f->in_table = true;
        f->offset = load_u64(entry, r->header.swap);
        f->size = load_u64(entry + 8, r->header.swap);
        offset += ENTRY_SIZE;
    }
}

static int reader_feature_load(PdReader *r, unsigned bit) {
    Feature *f = &r->features[bit];
    uint8_t *to;
    int rc;

    if (f->offset > r->main.size || f->size > r->main.size - f->offset) {
        reader_cut_off(r, false, f->offset, "feature %u lies beyond the end of the file", bit);
        return -EBADMSG;
    }
    if (f->size > r->limits.feature_bytes - r->feature_bytes)
        return -EFBIG;
    to = buffer_reserve(&f->body, (size_t)f->size + 1);
    if (!to)
        return buffer_error(&f->body);
    rc = source_read_at(&r->main, f->offset, to, (size_t)f->size);
    if (rc == -ENODATA) {
        reader_cut_off(r, false, f->offset, "feature %u lies beyond the end of the file", bit);
        return -EBADMSG;
    }
    if (rc < 0)
        return rc;
    buffer_commit(&f->body, (size_t)f->size);
    r->feature_bytes += f->size;
    f->loaded = true;
    return 0;
}

int feature_keep(PdReader *r, unsigned bit, Bytes body, bool append) {
    Feature *f = &r->features[bit];

    if (!append) {
        r->feature_bytes -= f->body.size;
        buffer_clear(&f->body);
    }
    if (body.size > r->limits.feature_bytes - r->feature_bytes)
        return -EFBIG;
    buffer_append(&f->body, body.data, body.size);
    if (buffer_error(&f->body) < 0)
        return buffer_error(&f->body);
    r->feature_bytes += body.size;
    f->loaded = true;
    return 0;
}

void features_done(PdReader *r) {
    for (unsigned i = 0; i < PD_FEATURE_BITS; i++)
        buffer_done(&r->features[i].body);
}

bool pd_reader_has_feature(const PdReader *reader, unsigned bit) {
    return bit < PD_FEATURE_BITS && reader->features[bit].present;
}

uint64_t pd_reader_feature_offset(const PdReader *reader, unsigned bit) {
    bool in_table = bit < PD_FEATURE_BITS && reader->features[bit].in_table;

    return in_table ? reader->features[bit].offset : 0;
}

int pd_reader_feature(PdReader *reader, unsigned bit, Bytes *ret) {
    Feature *f;
    int r;

    if (bit >= PD_FEATURE_BITS)
        return -ENOENT;
    f = &reader->features[bit];
    if (!f->loaded && !f->in_table)
        return -ENOENT;
    if (!f->loaded) {
        r = reader_feature_load(reader, bit);
        if (r < 0)
            return r;
    }
    *ret = buffer_bytes(&f->body);
    return 0;
}
