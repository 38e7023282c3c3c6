/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Parses mappings from /proc/PID/maps, from its text or from a query. */

#include "perfdata/record/record.h"
#include "scan/text/procmap.h"

/*
 * Parses a line without its newline: true for an executable mapping, with the values of the
 * kernel's MMAP2, and pid and tid 0. The filename points into the line, which is modified, or to a
 * constant. with_data: also returns true for a readable private mapping of a file.
 */
bool mapping_parse(char *line, size_t size, bool with_data, PdMmap *ret);
/* Whether it is executable or such a data mapping. */
bool mapping_is_wanted(const PdMmap *mmap, bool with_data);
/* Parses any mapping, but only its range and identity. */
bool mapping_parse_any(char *line, size_t size, PdMmap *ret);
/* The mapping of a query; the name ends with NUL and is empty if there is none. */
void mapping_of_query(const ProcmapQuery *query, const char *name, PdMmap *ret);
