/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What the host allows: rates, descriptors, memory for rings; and the one sentence about an event
 * that could not be opened, with its remedy.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LIMIT_RING_PAGES_MIN = 8 };

/* The kernel's present limit of samples a second; 0: not known. */
uint64_t limit_sample_rate(void);
/* The least of those that are not 0. */
uint64_t limit_frequency(uint64_t wanted_hz, uint64_t configured_hz, uint64_t kernel_hz);

/* A ring's size: the power of two at or below what is wanted, halved until all n_rings fit into
 * the budget, but no less than LIMIT_RING_PAGES_MIN pages. */
uint64_t limit_ring_bytes(uint64_t wanted, size_t n_rings, uint64_t budget);
uint64_t limit_ring_bytes_min(void);
/* The power of two that holds so many bytes, within the bounds of a ring. */
uint64_t limit_ring_bytes_for(uint64_t bytes);
/* How long a ring holds what one CPU writes. */
uint64_t limit_ring_span_ms(uint64_t ring_bytes, uint64_t bytes_per_sec);

/* What the rings of a user may take who may not lock as much as he likes, each mapped twice. */
uint64_t limit_locked_bytes(void);

/* Raises the soft limit where that is needed and possible; -EMFILE when `needed` descriptors more
 * than the ordinary ones are too many, *ret_limit then says what there may be. */
int limit_descriptors(uint64_t needed, uint64_t *ret_limit);

/* That only processes of this user are recorded, and why. */
void limit_log_followed(bool with_kernel);
/* What helps against that error when an event of a session is opened; NULL: nothing that is known.
 */
const char *limit_remedy(int error);
/* Logs and returns the error. `who` is the session, or NULL for side-band. */
int limit_log_open_failure(int error, const char *who, const char *event, unsigned cpu);
