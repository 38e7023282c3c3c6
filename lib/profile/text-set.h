/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Interned texts: each distinct run of bytes has a number, counted from 0. Texts come from outside
 * and are arbitrary bytes, so whoever prints one escapes it. Number 0 is the empty text.
 */

#include "util/bytes.h"
#include "util/macro.h"

enum { TEXT_SET_MAX = 1 << 26 };

typedef struct TextSet TextSet;

int text_set_new(TextSet **ret);
TextSet *text_set_free(TextSet *set);
DEFINE_CLEANUP(TextSet *, text_set_free);

/* Copies a new text. -ENOSPC: there are TEXT_SET_MAX, or 4 GiB of them. */
int text_set_add(TextSet *set, Bytes text, uint32_t *ret);
/* False: it is not in the set. */
bool text_set_find(const TextSet *set, Bytes text, uint32_t *ret);
uint32_t text_set_count(const TextSet *set);
/* Of all texts, each with its NUL. */
size_t text_set_bytes(const TextSet *set);
/* Followed by a NUL that is not counted. Valid until something is added. */
Bytes text_set_get(const TextSet *set, uint32_t number);
