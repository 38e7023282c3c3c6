/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Writes the result of convert and merge: a PdWriter, and the parts that a copy has to recompute
 * because they depend on the position of records: which file of a folder gets a record, the index
 * of AUX area data, FINISHED_ROUND if the order of records has changed.
 */

#include "client/frame/option.h"
#include "perfdata/feature/environment.h"
#include "perfdata/reader/reader.h"
#include "perfdata/writer/writer.h"
#include "util/buffer.h"

/* For an option_choice(); layout_chosen() knows the meaning of its words. */
#define LAYOUT_WORDS "file|directory|pipe"
/* word: from 1 as counted by option_choice(); 0: not given, then a file or, for "-", a stream. */
PdLayout layout_chosen(unsigned word, const char *path);
/* Field: int, the level of zstd. Accepts zstd, zstd:N or none. */
int option_compress(const Option *option, const char *argument, void *field);

typedef struct Sink {
    PdWriter *writer;
    PdWriterOptions options;
    bool split;           /* records with a time go to data.0 */
    bool ends_early;      /* the input, a stream, ended within a payload: nothing may follow */
    bool makes_rounds;    /* records come in order of time, and the sink writes FINISHED_ROUND */
    uint64_t round_bytes; /* bytes since the last round */
    uint64_t n_auxtrace;
    Buffer auxtrace_index; /* {offset, size} each */
    Buffer payload;
    unsigned n_events; /* the number of `events` that the writer has */
} Sink;

int sink_open(Sink *sink, int fd, const PdWriterOptions *options);
void sink_done(Sink *sink);

/* Reads the body of a feature into env. -ENOENT: there is none, -EBADMSG: it is shorter than it
 * claims. */
int sink_read_feature(PdReader *reader, PdEnvironment *env, unsigned bit, Bytes *ret);
/* Copies all features of the reader that need no change, except those with skip[bit]. An invalid
 * feature is left out, since perf may refuse the whole recording because of it; the first one is
 * noted in *why. */
int sink_carry_features(Sink *sink, PdReader *reader, const bool *skip, PdDamage *why);
/* Passes on the events that the writer does not have yet. */
int sink_add_events(Sink *sink, const PdEvents *events);
/* Call it after events and features. */
int sink_begin(Sink *sink, const PdEvents *events, bool makes_rounds);

/* `reader` provides the payload, if the record has one. `time`: 0 if it has none. A record whose
 * payload is cut off is left out; the reader reports the damage. */
int sink_write(Sink *sink, PdReader *reader, const PdRecord *record, uint64_t time);

int sink_finish(Sink *sink);
