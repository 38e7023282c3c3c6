/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What /proc/PID/maps tells of a mapping, as text or in answer to a query. */

#include "perfdata/record/record.h"
#include "scan/procmap.h"

/*
 * A line without its newline: true for an executable mapping, told as the kernel's MMAP2 would
 * tell it, with pid and tid 0. The filename points into the line, which is written to, or at a
 * constant. with_data: also for a file that is read, in a mapping of its own.
 */
bool mapping_parse(char *line, size_t size, bool with_data, PdMmap *ret);
/* Executable, or such data. */
bool mapping_is_wanted(const PdMmap *mmap, bool with_data);
/* Any mapping, for its range and identity alone. */
bool mapping_parse_any(char *line, size_t size, PdMmap *ret);
/* A mapping that was asked for; the name is ended by NUL, empty where there is none. */
void mapping_of_query(const ProcmapQuery *query, const char *name, PdMmap *ret);
