/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/reader/reader-private.h"

#include <errno.h>

#include "util/macro.h"

/*
 * Iterates over a recording's records. There are two windows: the source's, over the file, and the
 * decompressor's, over the contents of COMPRESSED records; a record is returned as a pointer into
 * one of them. While records come from a chunk the source does not move, so the chunk stays in its
 * window. A directory is read file by file, `data` first.
 */

static inline void reader_walk_read_head(const uint8_t *p, PdRecord *rec) {
    PdRecord head = pd_record_at(p, rec->swap);

    rec->type = head.type;
    rec->misc = head.misc;
    rec->size = head.size;
    rec->data = p;
}

static int reader_walk_stop(PdReader *r) {
    r->file_ended = true;
    return 0;
}

/* Describes what is wrong with an impossible header. */
static int reader_walk_no_record(PdReader *r, const PdRecord *rec) {
    if (rec->type - 1 >= UINT16_MAX)
        reader_damage(r, true, rec->offset, "there is no record: its type would be %u", rec->type);
    else
        reader_damage(r, true, rec->offset, "a record of type %u claims %u bytes", rec->type,
                      rec->size);
    return reader_walk_stop(r);
}

static int reader_walk_cut_off(PdReader *r, uint64_t offset, size_t wanted, size_t left) {
    reader_cut_off(r, true, offset, "the last record is cut off: %zu bytes where it has %zu", left,
                   wanted);
    return reader_walk_stop(r);
}

/* The record at the position of the source: 1, or 0 at the end of the file or at damage. */
static int reader_walk_next_on_disk(PdReader *r, PdRecord *ret) {
    Source *s = r->source;
    int rc;

    if (source_left(s) < PD_RECORD_HEADER_SIZE) {
        rc = source_want(s, PD_RECORD_HEADER_SIZE);
        if (rc < 0)
            return rc;
        if (source_left(s) == 0)
            return reader_walk_stop(r);
        if (source_left(s) < PD_RECORD_HEADER_SIZE)
            return reader_walk_cut_off(r, source_offset(s), PD_RECORD_HEADER_SIZE, source_left(s));
    }
    ret->offset = source_offset(s);
    reader_walk_read_head(source_at(s), ret);
    if (!pd_record_is_sane(ret))
        return reader_walk_no_record(r, ret);
    if (source_left(s) < ret->size) {
        /* Check only a long record early; for the others a growing file may get the rest. */
        if (ret->size > UINT16_MAX && ret->size > source_remaining(s))
            return reader_walk_cut_off(r, ret->offset, ret->size, (size_t)source_remaining(s));
        rc = source_want(s, ret->size);
        if (rc < 0)
            return rc;
        if (source_left(s) < ret->size)
            return reader_walk_cut_off(r, ret->offset, ret->size, source_left(s));
        ret->data = source_at(s);
    }
    s->start += ret->size;
    return 1;
}

/* The next record of the chunk: 1, or 0 when the chunk has no further whole one. */
static int reader_walk_next_inside(PdReader *r, PdRecord *ret) {
    size_t wanted = PD_RECORD_HEADER_SIZE;
    Bytes window;

    ret->offset = r->chunk_offset;
    ret->decompressed = true;
    for (unsigned pass = 0; pass < 2; pass++) {
        int rc;

        window = decompress_window(r->decompress);
        if (window.size < wanted) {
            rc = decompress_want(r->decompress, wanted);
            if (rc == -EBADMSG) {
                reader_damage(r, true, r->chunk_offset, "the compressed data makes no sense: %s",
                              decompress_why(r->decompress));
                return reader_walk_stop(r);
            }
            if (rc < 0)
                return rc;
            window = decompress_window(r->decompress);
        }
        if (window.size < wanted)
            return 0;
        reader_walk_read_head(window.data, ret);
        if (!pd_record_is_sane(ret))
            return reader_walk_no_record(r, ret);
        wanted = ret->size;
    }
    decompress_skip(r->decompress, ret->size);
    return 1;
}

static void reader_walk_count_other(PdReader *r, uint32_t type) {
    size_t low = 0, high = r->n_others;
    DiskCount *grown;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (r->others[middle].type < type)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < r->n_others && r->others[low].type == type) {
        r->others[low].n++;
        return;
    }
    if (r->n_others >= DISK_OTHERS_MAX)
        return;
    grown = reallocarray(r->others, r->n_others + 1, sizeof(*grown));
    if (!grown)
        return;
    r->others = grown;
    memmove(grown + low + 1, grown + low, (r->n_others - low) * sizeof(*grown));
    grown[low] = (DiskCount){.type = type, .n = 1};
    r->n_others++;
}

static int reader_walk_begin_chunk(PdReader *r, const PdRecord *rec) {
    Bytes chunk = {.data = rec->data + PD_RECORD_HEADER_SIZE,
                   .size = rec->size - PD_RECORD_HEADER_SIZE};
    uint64_t size;
    int rc;

    if (!r->decompress) {
        rc = decompress_new(r->limits.window_log, &r->decompress);
        if (rc < 0)
            return rc;
    }
    if (rec->type == PD_RECORD_COMPRESSED2) {
        if (chunk.size < 8) {
            reader_damage(r, true, rec->offset, "a COMPRESSED2 record does not say its size");
            return reader_walk_stop(r);
        }
        size = load_u64(chunk.data, rec->swap);
        chunk.data += 8;
        chunk.size -= 8;
        if (size > chunk.size)
            reader_damage(r, false, rec->offset,
                          "a COMPRESSED2 record announces more bytes than it has");
        chunk.size = (size_t)MIN(size, (uint64_t)chunk.size);
    }
    decompress_feed(r->decompress, chunk);
    r->chunk_offset = rec->offset;
    r->inside = true;
    return 0;
}

/* Processes a tool's record that concerns the reader itself. */
static int reader_walk_take_in(PdReader *r, PdRecord *rec) {
    switch (rec->type) {
    case PD_RECORD_AUXTRACE:
    case PD_RECORD_TRACING_DATA:
        reader_payload_begin(r, rec);
        if (rec->type == PD_RECORD_AUXTRACE)
            return 0;
        break;
    case PD_RECORD_HEADER_ATTR:
    case PD_RECORD_EVENT_TYPE:
    case PD_RECORD_BUILD_ID:
    case PD_RECORD_EVENT_UPDATE:
    case PD_RECORD_HEADER_FEATURE:
        break;
    default:
        return 0;
    }
    if (r->n_records <= r->n_taken)
        return 0;
    r->n_taken = r->n_records;
    return intake_record(r, rec);
}

static int reader_walk_end_of_file(PdReader *r) {
    Bytes window = r->decompress ? decompress_window(r->decompress) : (Bytes){};
    int fd;

    if (window.size > 0 && !r->damage_is_final)
        reader_damage(r, true, r->chunk_offset,
                      "the compressed data ends within a record: %zu bytes of it", window.size);
    r->inside = false;
    if (r->decompress)
        decompress_reset(r->decompress);
    r->position_before += r->source->stream ? source_offset(r->source) : r->source->size;
    if (r->source == &r->part)
        source_done(&r->part);
    for (;;) {
        if (r->file == r->n_parts) {
            r->ended = true;
            return 0;
        }
        fd = folder_open_part(r->folder_fd, r->parts[r->file++]);
        if (fd >= 0)
            break;
        if (fd == -ENOMEM || fd == -EMFILE || fd == -ENFILE)
            return fd;
        reader_damage(r, false, 0, "data.%u cannot be read: %s", r->parts[r->file - 1],
                      strerror(-fd));
    }
    (void)source_open_fd(&r->part, fd);
    r->source = &r->part;
    r->file_ended = false;
    return 0;
}

/* 1: return the record; 0: continue with the next one. */
static int reader_walk_accept_record(PdReader *r, PdRecord *rec) {
    int rc;

    if (!rec->decompressed) {
        if (rec->type < DISK_TYPES)
            r->on_disk[rec->type]++;
        else
            reader_walk_count_other(r, rec->type);
    }
    if (rec->type == PD_RECORD_COMPRESSED || rec->type == PD_RECORD_COMPRESSED2) {
        if (!rec->decompressed)
            return reader_walk_begin_chunk(r, rec);
        reader_damage(r, true, rec->offset, "a compressed record holds a compressed record");
        return reader_walk_stop(r);
    }
    r->n_records++;
    if (rec->type >= PD_RECORD_USER) {
        rc = reader_walk_take_in(r, rec);
        if (rc < 0)
            return rc;
    }
    return 1;
}

int pd_reader_next(PdReader *reader, PdRecord *ret) {
    int r;

    if (reader->payload_left > 0 || reader->payload_kept.size > 0) {
        r = reader_payload_skip(reader);
        if (r < 0)
            return r;
    }
    while (!reader->ended) {
        *ret = (PdRecord){.swap = reader->header.swap, .file = reader->file};
        if (reader->file_ended)
            r = reader_walk_end_of_file(reader);
        else if (reader->inside) {
            r = reader_walk_next_inside(reader, ret);
            reader->inside = r > 0;
        } else
            r = reader_walk_next_on_disk(reader, ret);
        if (r > 0 && !reader->file_ended)
            r = reader_walk_accept_record(reader, ret);
        if (r != 0)
            return r;
    }
    return 0;
}

int pd_reader_rewind(PdReader *reader) {
    if (reader->main.stream)
        return -ESPIPE;
    source_done(&reader->part);
    reader->source = &reader->main;
    reader->file = 0;
    reader->file_ended = reader->ended = reader->inside = false;
    reader->payload_left = 0;
    reader->payload_kept = (Bytes){};
    reader->position_before = 0;
    reader->n_records = 0;
    memset(reader->on_disk, 0, sizeof(reader->on_disk));
    reader->n_others = 0;
    if (reader->decompress)
        decompress_reset(reader->decompress);
    source_seek(&reader->main, reader->header.data_offset, reader->data_end);
    return 0;
}

const PdHeader *pd_reader_header(const PdReader *reader) {
    return &reader->header;
}

PdEvents *pd_reader_events(const PdReader *reader) {
    return reader->events;
}

uint64_t pd_reader_on_disk(const PdReader *reader, uint32_t type) {
    if (type < DISK_TYPES)
        return reader->on_disk[type];
    for (size_t i = 0; i < reader->n_others; i++)
        if (reader->others[i].type == type)
            return reader->others[i].n;
    return 0;
}

void pd_reader_each_on_disk(const PdReader *reader,
                            void (*fn)(uint32_t type, uint64_t n, void *arg), void *arg) {
    for (uint32_t i = 0; i < DISK_TYPES; i++)
        if (reader->on_disk[i] > 0)
            fn(i, reader->on_disk[i], arg);
    for (size_t i = 0; i < reader->n_others; i++)
        fn(reader->others[i].type, reader->others[i].n, arg);
}

uint64_t pd_reader_position(const PdReader *reader) {
    return reader->position_before + (reader->ended ? 0 : source_offset(reader->source));
}

uint64_t pd_reader_total(const PdReader *reader) {
    return reader->total;
}
