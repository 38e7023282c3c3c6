/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * How many columns of a terminal a text takes. The text is UTF-8 that passed the escape. No
 * function here asks the locale: profctl prints the same bytes in every one.
 */

#include <stddef.h>

size_t width_of(const char *text, size_t n);
/* How many bytes of the text fit into so many columns; never a part of a character. */
size_t width_fit(const char *text, size_t n, size_t columns);
