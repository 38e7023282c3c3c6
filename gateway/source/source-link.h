/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The way of a thread to profd, which another thread can break at any time: while it connects,
 * while it waits for an answer, and while it reads the stream.
 */

#include <pthread.h>

#include "follow/follow.h"

enum { SOURCE_PROBLEM_MAX = 256 };

typedef struct SourceLink {
    const char *socket; /* NULL: the default one; borrowed */
    pthread_mutex_t lock;
    int fd; /* a copy of the descriptor of the last connection; -1: none */
    bool is_broken;
} SourceLink;

void source_link_init(SourceLink *link, const char *socket);
void source_link_done(SourceLink *link);
/* From any thread: what uses the link ends at once, until source_link_mend(). */
void source_link_break(SourceLink *link);
void source_link_mend(SourceLink *link);

/* Connects; -ECANCELED: the link is broken. */
int source_link_open(SourceLink *link, Connection **ret);
/* follow_connect() over a new connection. Failures are described in ret_problem: -ENODATA: nothing
 * of the window was recorded; -EREMOTEIO, -ESTALE: it cannot continue; -ENOTCONN: profd is away;
 * -EACCES: profd or its socket denies it; -ECANCELED; -ENOMEM. */
int source_link_follow(SourceLink *link, Follow *follow, char ret_problem[SOURCE_PROBLEM_MAX]);
/* Whether profd lets what the session (NULL: the default one) records now be followed. */
bool source_link_may_follow(SourceLink *link, const char *session);
/* The folder of the binaries that the running profd keeps, for the caller to free; NULL: it is not
 * known. */
int source_link_ask_binaries(SourceLink *link, char **ret);
