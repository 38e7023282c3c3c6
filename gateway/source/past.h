/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The thread that reads windows of the past, one after the other. */

#include "source/past-reading.h"

typedef struct Past Past;
typedef struct PastJob PastJob;

typedef struct PastOptions {
    const char *socket, *session; /* NULL: the default ones; borrowed */
    Namer *namer;
    EdgeClock *clock;
    int wake_fd; /* an eventfd: a window was read */
} PastOptions;

int past_new(const PastOptions *options, Past **ret);
/* Ends the thread; jobs are forgotten. Accepts NULL. False: as live_end(). */
bool past_end(Past *past);
int past_start(Past *past);
/* The selection is copied; NULL: all. `owner` is for past_take(). */
int past_add(Past *past, const PastWindow *window, void *owner, PastJob **ret);
/* Forgets a job that was not taken. */
void past_cancel(Past *past, PastJob *job);
/* A window that was read; the job is gone after that. False: there is none. *ret_interval is NULL
 * after an error, else its reference is the caller's. */
bool past_take(Past *past, void **ret_owner, int *ret_error, Interval **ret_interval);
/* Those that wait, and the one that is being read. */
size_t past_count(Past *past);
