/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Reading a recording, whatever holds it: a PERFILE2 or PERFFILE file, a pipe stream (also one
 * that is still being written), or a directory of perf record --threads. Records come in file
 * order, decompressed, one at a time, out of a window of bounded size; memory does not grow with
 * the recording.
 *
 * Damage is no error. Reading stops at the first byte that makes no sense, everything before it
 * has been handed out, and pd_reader_damage() says in one sentence what was found and where. In a
 * directory the other files are still read. Only a thing that is no perf.data at all, or that the
 * system cannot read, fails to open.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "perfdata/event/event.h"
#include "perfdata/record/record.h"
#include "util/bytes.h"

typedef struct PdReader PdReader;

typedef enum PdMode { PD_MODE_FILE, PD_MODE_PIPE, PD_MODE_DIRECTORY } PdMode;

/* One sentence about what is wrong, without a full stop; offset and file say where. */
typedef struct PdDamage {
    char text[256];
    uint64_t offset;
    uint32_t file; /* as PdRecord.file */
    bool cut_off;  /* the file ends too early */
} PdDamage;

typedef struct PdHeader {
    PdMode mode;
    unsigned magic_version; /* 1: PERFFILE, 2: PERFILE2 */
    bool swap;              /* written by a host of the other byte order */
    bool big_endian;
    uint64_t attr_size; /* of an entry, as the header says; 0 in a pipe */
    bool unfinished;    /* the recorder died: data.size is 0, features are unknown */
    uint64_t data_offset, data_size;
    unsigned n_files; /* 1, or 1 + the number of data.N */
} PdHeader;

/*
 * What can be limited; zero: the default, given here. All of it is about memory. Beside it a reader
 * holds two windows of 256 KiB (one of them up to 64 MiB while a record of simpleperf is that long)
 * and the events, of which there are at most 65,536 with 4 Mi ids.
 */
typedef struct PdReaderLimits {
    uint64_t feature_bytes; /* all feature sections that are kept, 64 MiB */
    uint32_t window_log;    /* zstd's window, 27 (128 MiB) */
} PdReaderLimits;

/*
 * Opens a path (a file or a directory), or a descriptor that the reader takes over on success (a
 * stream where it cannot seek; a regular file is read from its start), or bytes that outlive it.
 * Fails with -EBADMSG for what is no perf.data, or with what the system said; *ret_why, when not
 * NULL, then holds the sentence.
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
 * The next record: 1 and *ret filled, 0 at the end (or at damage), negative errno when the system
 * failed. On a stream it waits until a record is whole, and no longer. Header records of a pipe
 * (HEADER_ATTR, HEADER_FEATURE …) are taken in and handed out, the containers COMPRESSED and
 * COMPRESSED2 are not handed out.
 */
int pd_reader_next(PdReader *reader, PdRecord *ret);

/* Up to n bytes of the payload behind the record last handed out (PdRecord.payload): bytes read,
 * 0 when there is no more, negative errno. What is not read is passed over. */
ssize_t pd_reader_payload(PdReader *reader, void *buffer, size_t n);

/* Starts again at the first record; -ESPIPE where the input cannot seek. */
int pd_reader_rewind(PdReader *reader);

/* Damage found so far, NULL when there is none. Of several the first one counts, but before all
 * that after which nothing more of a file could be read. */
const PdDamage *pd_reader_damage(const PdReader *reader);

/* Features present: known at once in a file, collected while reading in a pipe (HEADER_FEATURE).
 * None in an unfinished file. */
bool pd_reader_has_feature(const PdReader *reader, unsigned bit);
/* A feature's body, read when first asked for and kept. -ENOENT: not there; -EBADMSG: section out
 * of bounds (and counted as damage); -EFBIG: above the limit. In a pipe TRACING_DATA and BUILD_ID
 * are given, though not present as features, when records of these names have come. */
int pd_reader_feature(PdReader *reader, unsigned bit, Bytes *ret);
/* Where its section begins; 0 when it came in a record. */
uint64_t pd_reader_feature_offset(const PdReader *reader, unsigned bit);

/* Records as they lie on disk, containers counted and contents not, of a type. */
uint64_t pd_reader_on_disk(const PdReader *reader, uint32_t type);
/* Calls fn(type, count) for each type seen on disk, ascending. */
void pd_reader_each_on_disk(const PdReader *reader,
                            void (*fn)(uint32_t type, uint64_t n, void *arg), void *arg);
/* Bytes consumed and (files: known) of how many; for progress. */
uint64_t pd_reader_position(const PdReader *reader);
uint64_t pd_reader_total(const PdReader *reader); /* 0: not known */
