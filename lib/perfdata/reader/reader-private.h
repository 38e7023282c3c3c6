/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What the files of the reader share. reader-walk.c iterates over the records; reader-header.c
 * opens, reader-feature.c keeps the features, reader-intake.c processes records that describe the
 * recording, reader-folder.c lists the files of a directory.
 */

#include "perfdata/event/format.h"
#include "perfdata/reader/decompress.h"
#include "perfdata/reader/reader.h"
#include "perfdata/reader/source.h"
#include "util/buffer.h"

enum {
    DISK_TYPES = 96, /* types with a counter of their own */
    DISK_OTHERS_MAX = 4096,
    EVENT_TYPES_MAX = 4096, /* a bound, because each is compared with each event */
    NAMINGS_MAX = 8,        /* a bound, because each reads all that has names again */
};

typedef struct Feature {
    bool present;  /* according to the header or a HEADER_FEATURE */
    bool in_table; /* offset and size are known */
    bool loaded;
    uint64_t offset, size;
    Buffer body;
} Feature;

typedef struct DiskCount {
    uint32_t type;
    uint64_t n;
} DiskCount;

struct PdReader {
    PdHeader header;
    PdReaderLimits limits;
    PdEvents *events;
    Source main; /* the file, the stream or `data` */
    Source part; /* the data.N that is being read */
    Source *source;

    int folder_fd; /* -1: not a directory */
    uint32_t *parts;
    size_t n_parts;
    uint32_t file; /* as PdRecord.file */
    bool file_ended, ended;
    uint64_t position_before, total; /* size of the files before this one, and of all files */
    uint64_t data_end;

    Decompress *decompress;
    bool inside; /* records still come from the chunk at chunk_offset */
    uint64_t chunk_offset;

    uint64_t payload_left;
    uint8_t small[64];  /* a record whose payload was read before it was returned */
    Bytes payload_kept; /* the rest of a payload that was kept as a feature */

    uint64_t n_records, n_taken; /* returned since the start, and how many were ever processed */
    unsigned n_event_types, n_namings;
    Feature features[PD_FEATURE_BITS];
    uint64_t feature_bytes;

    bool damaged, damage_is_final;
    PdDamage damage;

    uint64_t on_disk[DISK_TYPES];
    DiskCount *others;
    size_t n_others;
};

/* In reader-damage.c: notes damage. The first one is kept, unless a later one stopped the
 * reading. */
void reader_damage(PdReader *r, bool final, uint64_t offset, const char *format, ...)
    _printf_(4, 5);
/* The same for a file that ends too early. */
void reader_cut_off(PdReader *r, bool final, uint64_t offset, const char *format, ...)
    _printf_(4, 5);

/* In reader-payload.c: determines how much follows the record, and skips what was not read. */
void reader_payload_begin(PdReader *r, PdRecord *record);
int reader_payload_skip(PdReader *r);

/* In reader-header.c: reads the header at the start of r->main and the sections it points to. Sets
 * *why on failure. */
int header_open(PdReader *r, PdDamage *why);
void why_set(PdDamage *why, uint64_t offset, const char *format, ...) _printf_(3, 4);

/* In reader-feature.c: */
void feature_table_read(PdReader *r, const bool *bits);
/* Whether there is a valid feature table at offset: then the file was finished. */
bool feature_table_fits(const PdReader *r, const bool *bits, uint64_t offset);
/* Keeps a body that came in a record; replaces the one before or appends to it. */
int feature_keep(PdReader *r, unsigned bit, Bytes body, bool append);
void features_done(PdReader *r);

/* In reader-intake.c: */
int intake_record(PdReader *r, PdRecord *record);
/* Names events by EVENT_DESC and TRACING_DATA. In a pipe each may come before the other, and before
 * some attrs, so that both are used whenever one comes. */
int intake_names(PdReader *r);
/* Sets a name from an event_types table or an EVENT_TYPE record. */
int intake_event_type(PdReader *r, uint64_t config, Bytes name);

/* In reader-folder.c: the N of each data.N, in ascending order. */
int folder_list(int fd, uint32_t **ret, size_t *ret_n);
int folder_open_part(int fd, uint32_t n);
