/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Values as administrators write them in systemd's files. The functions return 0, -EINVAL for an
 * invalid value, -ERANGE for one that is too large; the output is unchanged on failure.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Digits at *p, which moves behind them. */
int parse_take_digits(const char **p, uint64_t *ret);
/* ".5" at *p as parts of a billion; 0 without a point. Digits beyond the ninth round nothing. */
int parse_take_fraction(const char **p, uint64_t *ret_billionths);
/* Digits only. */
int parse_u64(const char *text, uint64_t *ret);
/* For example "64M": K, M, G and T are powers of 1024; no unit means bytes. */
int parse_size(const char *text, uint64_t *ret_bytes);
/* For example "500ms", "10min", "1h 30min": us, ms, s, min (m), h, d, w, M (months of 30.44 days),
 * y (of 365.25) and their long names; no unit means seconds. */
int parse_span(const char *text, uint64_t *ret_ns);
/* yes, true, on, 1; no, false, off, 0. */
int parse_bool(const char *text, bool *ret);
/* Whether it may name a session or a snapshot: a letter or digit, then letters, digits, `.`, `_`
 * and `-`; at most `max` bytes. */
bool parse_is_name(const char *text, size_t max);
