/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Parses mappings from the text of /proc/PID/maps. */

#include "perfdata/record/record.h"

/*
 * Parses a line without its newline: true for an executable mapping, with the values of the
 * kernel's MMAP2, and pid and tid 0. The filename points into the line, which is modified, or to a
 * constant. with_data: also returns true for a readable private mapping of a file.
 */
bool mapping_parse(char *line, size_t size, bool with_data, PdMmap *ret);
/* Parses any mapping, but only its range and identity. */
bool mapping_parse_any(char *line, size_t size, PdMmap *ret);
