/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the files behind writer.h share; no other file includes it. */

#include "perfdata/writer/compress.h"
#include "perfdata/writer/stream.h"
#include "perfdata/writer/tally.h"
#include "perfdata/writer/writer.h"

typedef struct PdFeatureBody {
    bool set, left_out;
    bool made; /* from the tally; may change at the next attempt to finish */
    uint8_t *data;
    size_t size;
} PdFeatureBody;

struct PdWriter {
    PdWriterOptions options;
    PdStream *streams; /* [0]: the file, the pipe or `data`; then data.N */
    unsigned n_streams;
    unsigned n_owned; /* descriptors to close: those of a directory */
    unsigned last;    /* the stream of the last write: a payload goes there */
    PdCompressor *compressor;
    PdEvents *events;
    PdTally *tally; /* NULL: not requested */
    PdFeatureBody features[PD_FEATURE_BITS];
    uint32_t attr_size;     /* of the attrs at the front of a file */
    size_t n_attrs_written; /* number of events in it */
    uint64_t attrs_offset;
    uint64_t data_offset;
    bool compressed; /* has or may get COMPRESSED records */
    bool begun, finished;
};

/* Allocates it without descriptors, compressor or tally. */
int pd_writer_alloc(const PdWriterOptions *options, unsigned n_streams, PdWriter **ret);
/* Keeps a copy. Also used for the writer's own features. */
int pd_writer_keep_feature(PdWriter *writer, unsigned bit, Bytes body);
/* Sets COMPRESSED and DIR_FORMAT to their present values. */
int pd_writer_keep_own_features(PdWriter *writer);
/* Sets SAMPLE_TIME and BUILD_ID from the tally, unless the caller set them. */
int pd_writer_keep_tally(PdWriter *writer);

/* In container.c: header, attrs and features of a file. */
int pd_container_begin(PdWriter *writer);
int pd_container_finish(PdWriter *writer);

/* In pipe.c: the same as records of a stream. */
int pd_pipe_begin(PdWriter *writer);
int pd_pipe_event(PdWriter *writer, const PdEvent *event);
/* 1 if a pipe cannot hold it. */
int pd_pipe_feature(PdWriter *writer, unsigned bit);
bool pd_pipe_takes_feature(const PdWriter *writer, unsigned bit, Bytes body);
