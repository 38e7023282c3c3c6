/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Writing a recording that every perf since 6.1 reads: a file, a pipe stream, or a directory. The
 * order of calls is: new, events and features, begin, records, finish. A file is appended in whole
 * records (whole zstd frames when compressed) behind a header whose data.size stays 0 until
 * finish, so that at any byte it is cut it can be recovered by pd_segment_recover().
 *
 * Compressed means PERF_RECORD_COMPRESSED, one whole zstd frame a record, cut at record ends; raw
 * at most 256 KiB a frame, compressed at most 65,520 bytes (else halved and tried again); records
 * that may not be compressed (TRACING_DATA and AUXTRACE with their payload, COMPRESSED itself,
 * the header records of a pipe) are written plain in their place. A pipe in the other byte order
 * stays plain: perf reads no feature of such a one, and so would not know how large a frame may be.
 */

#include <stdbool.h>
#include <stdint.h>

#include "perfdata/event/event.h"
#include "perfdata/feature/environment.h"
#include "perfdata/reader/reader.h"

typedef enum PdLayout { PD_LAYOUT_FILE, PD_LAYOUT_PIPE, PD_LAYOUT_DIRECTORY } PdLayout;

typedef struct PdWriterOptions {
    PdLayout layout;
    bool swap;           /* records and everything else in the other byte order */
    int zstd_level;      /* 0: not compressed, else 1 to 22; no effect on a PIPE with swap */
    unsigned n_files;    /* DIRECTORY: how many data.N, 1 to 64 */
    bool tally;          /* watch the records; finish adds SAMPLE_TIME and BUILD_ID from them */
    bool newer_features; /* PIPE: also features above 31, at which perf report 6.1 stops */
} PdWriterOptions;

/* Of pd_writer_set_feature(): the layout cannot hold it. */
enum { PD_WRITER_LEFT_OUT = 1 };

typedef struct PdWriter PdWriter;

/*
 * FILE and PIPE: onto a descriptor (borrowed; FILE: regular, empty, opened for reading too and not
 * for appending, PIPE: anything). DIRECTORY: into the folder that `fd` is open on, which is empty.
 */
int pd_writer_new(int fd, const PdWriterOptions *options, PdWriter **ret);
/* Frees; what is not finished stays as it is on disk: abandoned, or to be recovered. */
PdWriter *pd_writer_free(PdWriter *writer);
DEFINE_CLEANUP(PdWriter *, pd_writer_free);

/*
 * Attr (raw bytes where the event has them, which are in the writer's byte order), ids, name. May
 * be called after begin: a pipe then gets a HEADER_ATTR in place, a file its attr section
 * rewritten at finish (a late event is lost when the file has to be recovered). All attrs of a
 * file get one size, which zeros beyond 128 bytes do not make larger. Names, units and scales go
 * into a pipe as EVENT_UPDATE; into a file with EVENT_DESC, which is a feature like others: see
 * pd_encode_event_desc(). -E2BIG: more ids than a pipe's HEADER_ATTR takes (8,174 at least).
 */
int pd_writer_add_event(PdWriter *writer, const PdEvent *event);
/*
 * A feature's body as it is on disk (in the byte order of the writer). The last one set counts; in
 * a pipe those set before begin come first, later ones in their place. COMPRESSED and DIR_FORMAT
 * are the writer's own and refused with -EINVAL. Returns 0 or PD_WRITER_LEFT_OUT: a pipe holds no
 * body above 65,519 bytes (but TRACING_DATA and BUILD_ID, which it has records for), no AUXTRACE
 * index, and none above 31 unless newer_features.
 */
int pd_writer_set_feature(PdWriter *writer, unsigned bit, Bytes body);
/* All features that the environment has, by the table of environment.h, but the writer's own;
 * PD_WRITER_LEFT_OUT when one was. */
int pd_writer_set_environment(PdWriter *writer, const PdEnvironment *environment);
bool pd_writer_left_out(const PdWriter *writer, unsigned bit);
int pd_writer_begin(PdWriter *writer);

/*
 * Whole records, one or more, into `data` (file 0) or data.N (file N + 1); a file that is no
 * directory has file 0 alone. -EINVAL: they are not whole. On any error but -ENOMEM none of them
 * was taken, and into a file the call may be repeated once the cause is gone (-ENOSPC …).
 */
int pd_writer_write(PdWriter *writer, uint32_t file, const void *records, size_t n);
/* What a writer's owner knows of samples already. */
typedef struct PdSpan {
    uint64_t samples;
    uint64_t first_ns, last_ns; /* least and greatest time */
} PdSpan;

/* The same with records out of a ring of samples, which the caller found to be whole: they are not
 * looked at again. */
int pd_writer_write_samples(PdWriter *writer, uint32_t file, const void *records, size_t n,
                            const PdSpan *span);
/* A COMPRESSED record as another writer made it, which holds so many bytes of records, samples in
 * the main. -EINVAL: this file is not compressed. */
int pd_writer_write_packed(PdWriter *writer, uint32_t file, Bytes packed, uint64_t raw,
                           const PdSpan *span);
/* Payload behind the record last written (which was TRACING_DATA or AUXTRACE); never compressed. */
int pd_writer_payload(PdWriter *writer, const void *payload, size_t n);
/* What comes next into this file starts a frame of its own: side-band apart from samples, say. No
 * effect without compression. */
int pd_writer_end_frame(PdWriter *writer, uint32_t file);
/* Ends the open frames and hands all bytes to the system; does not sync. */
int pd_writer_flush(PdWriter *writer);
/* Features behind the data, then the header with the true sizes. Does not sync or rename. */
int pd_writer_finish(PdWriter *writer);

/* Where the next record of file 0 will lie; with zstd that of its frame. Behind an AUXTRACE this
 * is how its index entry is made. */
uint64_t pd_writer_offset(PdWriter *writer);
/* The same of any file of a directory. */
uint64_t pd_writer_file_offset(PdWriter *writer, uint32_t file);
/* Bytes before and after compression so far, of all files. */
uint64_t pd_writer_raw_bytes(const PdWriter *writer);
uint64_t pd_writer_stored_bytes(const PdWriter *writer);
/* Files without a build id, each once; 0 unless records are watched. */
uint64_t pd_writer_unidentified(const PdWriter *writer);

/* What a recovery did. */
typedef struct PdRecovery {
    uint64_t records, samples, unidentified;
    uint64_t kept_bytes, cut_bytes; /* of the data sections */
    char damage[256];               /* what was found where it was cut, "" when it ended cleanly */
} PdRecovery;

/*
 * Finishes what a writer left unfinished at any byte: cuts each file at its last whole record (and
 * whole frame), writes the features of `environment` and those that the data tells (EVENT_DESC,
 * SAMPLE_TIME, BUILD_ID), then the header. `fd` is the file opened for reading and writing, or
 * the folder. A finished file is left alone and told as such by -EALREADY; what holds no event
 * that could be read fails with -EBADMSG and is not touched.
 */
int pd_segment_recover(int fd, PdLayout layout, const PdEnvironment *environment, PdRecovery *ret);

/* By the clock of the samples; 0: there is none. */
typedef struct PdRecoveredTimes {
    uint64_t last_ns;  /* of the last sample */
    uint64_t round_ns; /* of the last one before the last FINISHED_ROUND */
} PdRecoveredTimes;

/* The same, where the environment depends on the data: on_read is called when all was read, and
 * before features are written. */
typedef struct PdRecoverOptions {
    PdLayout layout;
    const PdEnvironment *environment;
    int (*on_read)(void *userdata, const PdRecoveredTimes *times);
    void *userdata;
} PdRecoverOptions;
int pd_segment_recover_with(int fd, const PdRecoverOptions *options, PdRecovery *ret);
