/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A recording on its way out, for convert and merge: a PdWriter, and what a copy has to make anew
 * because it depends on where records lie: which file of a folder takes a record, the index of
 * AUX area data, FINISHED_ROUND where the order of records has changed.
 */

#include "client/frame/option.h"
#include "perfdata/feature/environment.h"
#include "perfdata/reader/reader.h"
#include "perfdata/writer/writer.h"
#include "util/buffer.h"

/* For an option_choice(); layout_chosen() knows what its words mean. */
#define LAYOUT_WORDS "file|directory|pipe"
/* word: from 1 as option_choice() counts, 0: not given, then a file or, for "-", a stream. */
PdLayout layout_chosen(unsigned word, const char *path);
/* Field: int, the level of zstd. zstd, zstd:N or none. */
int option_compress(const Option *option, const char *argument, void *field);

typedef struct Sink {
    PdWriter *writer;
    PdWriterOptions options;
    bool split;           /* records with a time go to data.0 */
    bool makes_rounds;    /* records come in order of time, and rounds are told by us */
    uint64_t round_bytes; /* since the last round */
    uint64_t n_auxtrace;
    Buffer auxtrace_index; /* {offset, size} each */
    Buffer payload;
    unsigned n_events; /* of `events` that the writer has */
} Sink;

int sink_open(Sink *sink, int fd, const PdWriterOptions *options);
void sink_done(Sink *sink);

/* The body of a feature, which env takes in. -ENOENT: there is none, -EBADMSG: it does not hold
 * what it announces. */
int sink_read_feature(PdReader *reader, PdEnvironment *env, unsigned bit, Bytes *ret);
/* All features of the reader that a copy can have as they are, but those with skip[bit]. A feature
 * that does not hold what it announces stays behind, since perf may refuse all of a recording that
 * has one; the first such is noted in *why. */
int sink_carry_features(Sink *sink, PdReader *reader, const bool *skip, PdDamage *why);
/* Hands on the events that the writer does not have yet. */
int sink_add_events(Sink *sink, const PdEvents *events);
/* After events and features. */
int sink_begin(Sink *sink, const PdEvents *events, bool makes_rounds);

/* `reader` gives the payload, where the record has one. `time`: 0 where it has none. */
int sink_write(Sink *sink, PdReader *reader, const PdRecord *record, uint64_t time);

int sink_finish(Sink *sink);
