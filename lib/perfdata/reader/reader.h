/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Reads a recording in any container: a PERFILE2 or PERFFILE file, a pipe stream (also one that is
 * still being written), or a directory of perf record --threads. Records come in file order,
 * decompressed, one at a time, out of a window of bounded size; memory does not grow with the
 * recording.
 *
 * Damage is not an error. Reading stops at the first byte that makes no sense, after everything
 * before it was returned, and pd_reader_damage() describes in one sentence what was found and
 * where. In a directory the other files are still read. Opening fails only if the input is no
 * perf.data at all, or the system cannot read it.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "perfdata/event/event.h"
#include "perfdata/record/record.h"
#include "util/bytes.h"

typedef struct PdReader PdReader;

typedef enum PdMode { PD_MODE_FILE, PD_MODE_PIPE, PD_MODE_DIRECTORY } PdMode;

/* One sentence about what is wrong, without a full stop; offset and file give its position. */
typedef struct PdDamage {
    char text[256];
    uint64_t offset;
    uint32_t file; /* as PdRecord.file */
    bool cut_off;  /* the file ends too early */
} PdDamage;

typedef struct PdHeader {
    PdMode mode;
    unsigned magic_version; /* 1: PERFFILE, 2: PERFILE2 */
    bool swap;              /* written on a host of the other byte order */
    bool big_endian;
    uint64_t attr_size; /* of an entry, from the header; 0 in a pipe */
    bool unfinished;    /* the recorder died: data.size is 0, features are unknown */
    uint64_t data_offset, data_size;
    unsigned n_files; /* 1, or 1 + the number of data.N */
} PdHeader;

/*
 * Limits of memory; zero means the default given here. In addition a reader has two windows of 256
 * KiB (one grows up to 64 MiB for a large record of simpleperf) and the events, at most 65,536 with
 * 4 Mi ids.
 */
typedef struct PdReaderLimits {
    uint64_t feature_bytes; /* of all features that are kept, 64 MiB */
    uint32_t window_log;    /* zstd's window, 27 (128 MiB) */
} PdReaderLimits;

/*
 * Opens a path (a file or a directory), a descriptor that the reader takes over on success (read as
 * a stream if it cannot seek; a regular file is read from its start), or bytes that must outlive
 * the reader. Fails with -EBADMSG for input that is no perf.data, or with the system's error;
 * *ret_why, if not NULL, then has the sentence.
 */
int pd_reader_open(const char *path, const PdReaderLimits *limits, PdReader **ret,
                   PdDamage *ret_why);
int pd_reader_open_fd(int fd, const PdReaderLimits *limits, PdReader **ret, PdDamage *ret_why);
int pd_reader_open_memory(Bytes bytes, const PdReaderLimits *limits, PdReader **ret,
                          PdDamage *ret_why);
PdReader *pd_reader_free(PdReader *reader);
DEFINE_CLEANUP(PdReader *, pd_reader_free);

const PdHeader *pd_reader_header(const PdReader *reader);
/* Grows while a pipe is read (HEADER_ATTR, EVENT_UPDATE). */
PdEvents *pd_reader_events(const PdReader *reader);

/*
 * The next record: 1 and *ret, 0 at the end (or at damage), a negative errno when the system
 * failed. On a stream it waits until a record is complete, and no longer. Header records of a pipe
 * (HEADER_ATTR, HEADER_FEATURE …) are processed and also returned; the containers COMPRESSED and
 * COMPRESSED2 are not returned.
 */
int pd_reader_next(PdReader *reader, PdRecord *ret);

/* Reads up to n bytes of the payload after the last record (PdRecord.payload): returns the number
 * of bytes, 0 at its end, or a negative errno. Unread payload is skipped. */
ssize_t pd_reader_payload(PdReader *reader, void *buffer, size_t n);

/* Starts again at the first record; -ESPIPE where the input cannot seek. */
int pd_reader_rewind(PdReader *reader);

/* The damage found so far, NULL if there is none. The first damage is reported, unless later damage
 * made it impossible to read the rest of a file. */
const PdDamage *pd_reader_damage(const PdReader *reader);

/* Which features are present: known from the start in a file, collected while reading in a pipe
 * (HEADER_FEATURE). None in an unfinished file. */
bool pd_reader_has_feature(const PdReader *reader, unsigned bit);
/* The body of a feature, read at the first call and kept. -ENOENT: missing; -EBADMSG: section out
 * of bounds (also reported as damage); -EFBIG: above the limit. In a pipe TRACING_DATA and BUILD_ID
 * are available, although not present as features, once records of these types have come. */
int pd_reader_feature(PdReader *reader, unsigned bit, Bytes *ret);
/* The offset of its section; 0 if it came in a record. */
uint64_t pd_reader_feature_offset(const PdReader *reader, unsigned bit);

/* The number of records of a type on disk: containers count, their contents do not. */
uint64_t pd_reader_on_disk(const PdReader *reader, uint32_t type);
/* Calls fn(type, count) for each type on disk, in ascending order. */
void pd_reader_each_on_disk(const PdReader *reader,
                            void (*fn)(uint32_t type, uint64_t n, void *arg), void *arg);
/* Bytes read and (for files) the total; for progress. */
uint64_t pd_reader_position(const PdReader *reader);
uint64_t pd_reader_total(const PdReader *reader); /* 0: unknown */
