/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Prints what other hosts sent: lines with the name of the host, JSON in an object, statuses in
 * words. */

#include "client/frame/command.h"

typedef struct HostLines {
    const char *host;
    int width;      /* of the longest host name */
    Buffer held;    /* read and not printed yet */
    size_t printed; /* bytes at its start that were printed */
} HostLines;

void host_lines_done(HostLines *lines);

/*
 * Prints all whole lines, at the end (`ended`) also an unfinished one; `remarks`: on stderr, else
 * as the result, which is JSON with --json. -EBADMSG: it was not valid JSON, which was reported.
 */
int host_print_lines(Context *c, HostLines *lines, bool ended, bool remarks);

/* Prints one sentence about a host whose command failed; for a single host (`one`) only what it
 * cannot have printed itself. */
void host_print_failure(const char *host, int status, bool one);
/* Maps a status that profctl may not know to one that it has. */
int host_known_status(int status);
