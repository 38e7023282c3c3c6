/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What other hosts said, as we say it: lines behind a name, JSON in an object, statuses in words.
 */

#include "client/frame/command.h"

typedef struct HostLines {
    const char *host;
    int width;   /* of the names of all hosts */
    Buffer held; /* read and not told yet */
    size_t told; /* bytes at its begin that were */
} HostLines;

void host_lines_done(HostLines *lines);

/*
 * Tells all whole lines, at the end (`ended`) also one that is not; `remarks`: on stderr, else as
 * the result, which is JSON where --json asks for it. -EBADMSG: it was none, and was told as such.
 */
int host_print_lines(Context *c, HostLines *lines, bool ended, bool remarks);

/* One sentence about a host whose command failed; where there is but `one`, only what it cannot
 * have said itself. */
void host_print_failure(const char *host, int status, bool one);
/* A status that profctl has, for one it may not. */
int host_known_status(int status);
