/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The width of a text on a terminal, in columns. The text is escaped UTF-8. These functions do not
 * use the locale: profctl prints the same bytes in every one.
 */

#include <stddef.h>

size_t width_of(const char *text, size_t n);
/* How many bytes of the text fit into these columns; never a part of a character. */
size_t width_fit(const char *text, size_t n, size_t columns);
