/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The text of a page with its styles and scripts in it, made of files by the build (embed.py). A
 * slot is a name in double braces; page-shell.c fills it. */

#include <stddef.h>

extern const unsigned char page_template[];
extern const size_t page_template_size;
