/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Which of two symbols at one address names it. */

#include "symbol/table/name-entry.h"
#include "util/buffer.h"

/* Whether `b` is better than `a`, whose names are in `strings`. */
bool name_choice_second(const Buffer *strings, const NameEntry *a, const NameEntry *b);
