/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the files behind writer.h share; nobody else includes it. */

#include "perfdata/writer/compress.h"
#include "perfdata/writer/stream.h"
#include "perfdata/writer/tally.h"
#include "perfdata/writer/writer.h"

typedef struct PdFeatureBody {
    bool set, left_out;
    bool made; /* from the tally, which may know more at the next attempt to finish */
    uint8_t *data;
    size_t size;
} PdFeatureBody;

struct PdWriter {
    PdWriterOptions options;
    PdStream *streams; /* [0]: the file, the pipe or `data`; then data.N */
    unsigned n_streams;
    unsigned n_owned; /* descriptors to close: those of a directory */
    unsigned last;    /* the stream last written to: a payload follows there */
    PdCompressor *compressor;
    PdEvents *events;
    PdTally *tally; /* NULL: not asked for */
    PdFeatureBody features[PD_FEATURE_BITS];
    uint32_t attr_size;     /* of the attrs at the front of a file */
    size_t n_attrs_written; /* events that stand there */
    uint64_t attrs_offset;
    uint64_t data_offset;
    bool compressed; /* has COMPRESSED records, or may get them */
    bool begun, finished;
};

/* Without descriptors, compressor or tally. */
int pd_writer_alloc(const PdWriterOptions *options, unsigned n_streams, PdWriter **ret);
/* Keeps a copy. Features of the writer itself come in here too. */
int pd_writer_keep_feature(PdWriter *writer, unsigned bit, Bytes body);
/* COMPRESSED and DIR_FORMAT, as things stand. */
int pd_writer_keep_own_features(PdWriter *writer);
/* SAMPLE_TIME and BUILD_ID from the tally, unless the caller set them. */
int pd_writer_keep_tally(PdWriter *writer);

/* container.c: header, attrs and features of a file. */
int pd_container_begin(PdWriter *writer);
int pd_container_finish(PdWriter *writer);

/* pipe.c: the same as records of a stream. */
int pd_pipe_begin(PdWriter *writer);
int pd_pipe_event(PdWriter *writer, const PdEvent *event);
/* 1 when a pipe cannot hold it. */
int pd_pipe_feature(PdWriter *writer, unsigned bit);
bool pd_pipe_takes_feature(const PdWriter *writer, unsigned bit, Bytes body);
