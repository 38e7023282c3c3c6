/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Sentences about attempts that failed, for the log and the status. Bytes of an engine are escaped,
 * and nothing secret is part of them. */

#include "engine/engine.h"
#include "transport/transport.h"

/* An answer that is no success, to a request of so many bytes before compression. */
void answer_sentence(const TransportAnswer *answer, const char *url, size_t request_bytes,
                     char *ret, size_t size);
/* An answer of success to a request of `n` profiles, of which the engine did not take some, or
 * about which it warns. */
void answer_rejection_text(const EngineRejection *rejection, size_t n, const char *url, char *ret,
                           size_t size);
/* A request that could not be made. */
void answer_error_text(int error, const SendConfig *config, char *ret, size_t size);
