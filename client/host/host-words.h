/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * -H: the same command on other hosts, over ssh, side by side. What we were told is told to the
 * profctl of each host, and what they print comes back with the host's name.
 */

#include "client/frame/context.h"
#include "util/buffer.h"

enum { HOST_STATUS_UNREACHABLE = 255 }; /* as ssh has it */

/* The words of a command line without its -H, quoted for a shell, each behind a blank. */
void host_quote_words(Buffer *out, const OptionHosts *hosts, int argc, char *const *argv);

/* The worse of two exit statuses: 255, then 1, 2, … up to 8; 0 is the best. */
int host_worse(int a, int b);

typedef struct HostWork {
    bool live;        /* lines are told as they come, not host by host */
    bool streams;     /* stdout is a recording: of one host, and passed on as it is */
    bool reads_stdin; /* so does the command, of one host */
} HostWork;

/* Runs our command line on all hosts and prints what comes of it. Returns the worst status. */
int host_run(Context *c, const HostWork *work);

/* Of the profctl that ssh starts: ends us when stdin ends, since then nobody waits any more. */
void host_leash(void);
