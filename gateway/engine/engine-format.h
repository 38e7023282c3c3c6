/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The encoders, for the table alone, and the limits of engines that an encoder obeys too. */

#include "engine/engine.h"

enum {
    /* Pyroscope's default, and half of the burst that its limit of the rate lets through. */
    PYROSCOPE_STACKS_MAX = 16000,
    PYROSCOPE_BYTES_MAX = 1 << 20,
    /* A quarter of what Parca takes: it holds a request in memory several times. */
    PARCA_BYTES_MAX = 16 << 20,
    /* What OTLP calls typical for receivers. */
    OTLP_BYTES_MAX = 4 << 20,
};

int pyroscope_encode(const EngineInput *input, Buffer *body, size_t *ret_next);
int parca_encode(const EngineInput *input, Buffer *body, size_t *ret_next);
int otlp_encode(const EngineInput *input, Buffer *body, size_t *ret_next);
/* None in a message that is broken. */
EngineRejection otlp_rejection(Bytes answer);
int file_encode(const EngineInput *input, Buffer *body, size_t *ret_next);
