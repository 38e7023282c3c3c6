/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Writes a recording that every perf since 6.1 can read: a file, a pipe stream, or a directory. The
 * order of calls is: new, events and features, begin, records, finish. A file is appended to in
 * whole records (whole zstd frames when compressed) after a header whose data.size is 0 until
 * finish, so that pd_segment_recover() can recover it wherever it was cut off.
 *
 * Compressed means PERF_RECORD_COMPRESSED, one whole zstd frame in each record; at most 256 KiB raw
 * and 65,520 bytes compressed (else the frame is halved). Records that may not be compressed
 * (TRACING_DATA and AUXTRACE with their payload, COMPRESSED itself, the header records of a pipe)
 * are written plain in their place. A pipe in the other byte order is not compressed: perf reads no
 * features from it and so would not know the maximum frame size.
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
    int zstd_level;      /* 0: uncompressed, else 1 to 22; no effect on a PIPE with swap */
    unsigned n_files;    /* DIRECTORY: the number of data.N, 1 to 64 */
    bool tally;          /* examine the records, so that finish can add SAMPLE_TIME and BUILD_ID */
    bool newer_features; /* PIPE: also write features above 31, at which perf report 6.1 stops */
} PdWriterOptions;

/* Result of pd_writer_set_feature(): the layout cannot hold the feature. */
enum { PD_WRITER_LEFT_OUT = 1 };

typedef struct PdWriter PdWriter;

/*
 * FILE and PIPE: writes to a descriptor (borrowed; FILE: regular, empty, opened for reading and
 * writing without O_APPEND, PIPE: anything). DIRECTORY: writes into the empty folder that `fd`
 * refers to.
 */
int pd_writer_new(int fd, const PdWriterOptions *options, PdWriter **ret);
/* Frees the writer; an unfinished file stays as it is on disk, to be deleted or recovered. */
PdWriter *pd_writer_free(PdWriter *writer);
DEFINE_CLEANUP(PdWriter *, pd_writer_free);

/*
 * Adds attr (raw bytes if the event has them, in the writer's byte order), ids and name. May be
 * called after begin: a pipe then gets a HEADER_ATTR in place, a file gets its attr section written
 * again at finish (a late event is lost if the file has to be recovered). All attrs of a file get
 * one size; zeros beyond 128 bytes do not increase it. Names, units and scales go into a pipe as
 * EVENT_UPDATE, and into a file with the EVENT_DESC feature: see pd_encode_event_desc(). -E2BIG:
 * more ids than the HEADER_ATTR of a pipe can hold (8,174 at least).
 */
int pd_writer_add_event(PdWriter *writer, const PdEvent *event);
/*
 * Sets a feature's body in the writer's byte order. The last call counts; in a pipe features set
 * before begin come first, later ones in their place. COMPRESSED and DIR_FORMAT belong to the
 * writer and are refused with -EINVAL. Returns 0 or PD_WRITER_LEFT_OUT: a pipe can hold no body
 * above 65,519 bytes (except TRACING_DATA and BUILD_ID, which have their own records), no AUXTRACE
 * index, and no feature above 31 unless newer_features is set.
 */
int pd_writer_set_feature(PdWriter *writer, unsigned bit, Bytes body);
/* Sets all features of the environment, by the table of environment.h, except the writer's own;
 * PD_WRITER_LEFT_OUT if one was left out. */
int pd_writer_set_environment(PdWriter *writer, const PdEnvironment *environment);
bool pd_writer_left_out(const PdWriter *writer, unsigned bit);
int pd_writer_begin(PdWriter *writer);

/*
 * Writes whole records, one or more, to `data` (file 0) or data.N (file N + 1); other layouts have
 * file 0 only. -EINVAL: they are not whole. On any error except -ENOMEM none of them was taken, and
 * for a file the call may be repeated when the cause is gone (-ENOSPC …).
 */
int pd_writer_write(PdWriter *writer, uint32_t file, const void *records, size_t n);
/* What the caller already knows about the samples. */
typedef struct PdSpan {
    uint64_t samples;
    uint64_t first_ns, last_ns; /* smallest and largest time */
} PdSpan;

/* The same for records from a ring of samples that the caller has checked: they are not examined
 * again. */
int pd_writer_write_samples(PdWriter *writer, uint32_t file, const void *records, size_t n,
                            const PdSpan *span);
/* Writes a COMPRESSED record from another writer that contains `raw` bytes of records, mainly
 * samples. -EINVAL: this file is not compressed. */
int pd_writer_write_packed(PdWriter *writer, uint32_t file, Bytes packed, uint64_t raw,
                           const PdSpan *span);
/* Writes the payload of the last record (TRACING_DATA or AUXTRACE); never compressed. */
int pd_writer_payload(PdWriter *writer, const void *payload, size_t n);
/* Makes the next record of this file begin a frame, for example to separate side-band from samples.
 * No effect without compression. */
int pd_writer_end_frame(PdWriter *writer, uint32_t file);
/* Ends the open frames and writes everything; does not sync. */
int pd_writer_flush(PdWriter *writer);
/* Writes the features after the data, then the header with the final sizes. Does not sync or
 * rename. */
int pd_writer_finish(PdWriter *writer);

/* The offset of the next record of file 0; with zstd that of its frame. Called after an AUXTRACE,
 * it gives the offset for the index. */
uint64_t pd_writer_offset(PdWriter *writer);
/* The same for any file of a directory. */
uint64_t pd_writer_file_offset(PdWriter *writer, uint32_t file);
/* Bytes before and after compression so far, of all files. */
uint64_t pd_writer_raw_bytes(const PdWriter *writer);
uint64_t pd_writer_stored_bytes(const PdWriter *writer);
/* The number of files without a build id; 0 unless records are examined. */
uint64_t pd_writer_unidentified(const PdWriter *writer);

/* The result of a recovery. */
typedef struct PdRecovery {
    uint64_t records, samples, unidentified;
    uint64_t kept_bytes, cut_bytes; /* of the data sections */
    char damage[256];               /* what was found at the cut; "": the file ended cleanly */
} PdRecovery;

/*
 * Finishes a file that a writer left unfinished at any point: cuts each file after its last whole
 * record (and whole frame), writes the features of `environment` and those from the data
 * (EVENT_DESC, SAMPLE_TIME, BUILD_ID), then the header. `fd` is the file opened for reading and
 * writing, or the folder. -EALREADY: the file is finished and was not changed; -EBADMSG: it has no
 * readable event and was not changed.
 */
int pd_segment_recover(int fd, PdLayout layout, const PdEnvironment *environment, PdRecovery *ret);

/* On the clock of the samples; 0: there is none. */
typedef struct PdRecoveredTimes {
    uint64_t last_ns;  /* of the last sample */
    uint64_t round_ns; /* of the last sample before the last FINISHED_ROUND */
} PdRecoveredTimes;

/* The same if the environment depends on the data: on_read is called after everything was read and
 * before features are written, and on_events after it, to name the events, which an unfinished
 * segment does not. Either may be NULL. */
typedef struct PdRecoverOptions {
    PdLayout layout;
    const PdEnvironment *environment;
    int (*on_read)(void *userdata, const PdRecoveredTimes *times);
    int (*on_events)(void *userdata, PdEvents *events);
    void *userdata;
} PdRecoverOptions;
int pd_segment_recover_with(int fd, const PdRecoverOptions *options, PdRecovery *ret);
