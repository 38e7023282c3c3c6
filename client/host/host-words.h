/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * -H: runs the same command on other hosts, in parallel, over ssh. The profctl of each host gets
 * our command line, and its output is printed with the name of the host.
 */

#include "client/frame/context.h"
#include "util/buffer.h"

enum { HOST_STATUS_UNREACHABLE = 255 }; /* the same status as in ssh */

/* Appends the words of a command line without its -H, quoted for a shell, each after a blank. */
void host_quote_words(Buffer *out, const OptionHosts *hosts, int argc, char *const *argv);

/* The worse of two exit statuses: 255, then 1, 2, … up to 8; 0 is the best. */
int host_worse(int a, int b);

typedef struct HostWork {
    bool live;        /* lines are printed as they come, not host by host */
    bool streams;     /* stdout is a recording, of one host, and copied unchanged */
    bool reads_stdin; /* the command reads stdin; only with one host */
} HostWork;

/* Runs our command line on all hosts and prints the results. Returns the worst status. */
int host_run(Context *c, const HostWork *work);

/* In the profctl that ssh starts: ends the process when stdin closes, since nobody waits any
 * more. */
void host_leash(void);
