/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What encoders share: the samples of an interval by series, parts of a series that an engine
 * accepts, and labels as engines take them. */

#include "engine/engine.h"
#include "export/pprof-part.h"

enum {
    ENGINE_PARTS_MAX = 4,
    ENGINE_STACKS_MIN = 16,  /* so many are not folded any more, whatever they need */
    ENGINE_VALUE_MAX = 1024, /* bytes of the value of a label; the rest is cut off */
};

typedef struct EngineRequest {
    const EngineInput *input;
    ExportInput export;
    ExportCells cells; /* by series */
} EngineRequest;

/* An ExportSink that appends to a Buffer. */
int engine_sink(const void *data, size_t size, void *arg);

int engine_request_init(EngineRequest *request, const EngineInput *input);
/* The same for an engine that takes pprof without compression. */
int engine_request_init_pprof(EngineRequest *request, const EngineInput *input, Pprof **ret);
void engine_request_done(EngineRequest *request);

/* How many samples a series has. */
size_t engine_series_samples(const EngineRequest *request, size_t series);
/* Divides a series into parts of up to max_stacks samples (0: all), at times 1 ms apart, since
 * engines discard a profile whose labels and time are those of another one. Of more than `keep`
 * samples the rarest become "[other]". Returns how many parts there are; 0: it has no samples. */
size_t engine_parts(const EngineRequest *request, size_t series, size_t max_stacks, size_t keep,
                    PprofPart ret[ENGINE_PARTS_MAX]);

/* Appends one series to the body, with these parts. */
typedef int (*EnginePut)(const EngineRequest *request, size_t series, const PprofPart *parts,
                         size_t n_parts, void *userdata, Buffer *body);
/* Appends series after series while they fit. Of one that is too large by itself as many stacks are
 * folded as it takes. */
int engine_fill(const EngineRequest *request, size_t max_stacks, EnginePut put, void *userdata,
                Buffer *body, size_t *ret_next);
/* How many samples to keep when `size` bytes are too many: as many as should fit, but less than
 * before. */
size_t engine_shrink(size_t keep, size_t size, size_t max_bytes);
/* The samples of parts that were folded. */
uint64_t engine_folded(const PprofPart *parts, size_t n);

/* False: a name for rules only, which begins with "__". */
bool engine_label_is_sent(const Label *label);
/* Appends the value in UTF-8. */
void engine_label_value(const char *value, Buffer *out);
/* Appends one label. */
typedef void (*EnginePutLabel)(const char *name, Bytes value, Buffer *body);
/* Appends "__name__" with the name of the series, then each label that is sent. */
int engine_put_labels(const EngineRequest *request, const Series *series, EnginePutLabel put,
                      Buffer *body);
/* Appends the name of a series, [a-zA-Z_][a-zA-Z0-9_]*: its label "__name__", else by its event. */
void engine_series_name(const EngineRequest *request, const Series *series, Buffer *out);
