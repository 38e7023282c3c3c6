/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Reads a running profd. A thread follows it and cuts the stream at multiples of the interval; a
 * second one reads windows of the past, one after the other. Both hand intervals over on the thread
 * of the loop. While profd is away, the first thread tries again; destinations then read what was
 * recorded meanwhile as windows.
 */

#include "interval/interval.h"
#include "loop/loop.h"
#include "process/selection.h"

typedef struct Source Source;
typedef struct SourceJob SourceJob;

typedef struct SourceOptions {
    const char *socket;  /* NULL: the default one; borrowed */
    const char *session; /* borrowed */
    uint64_t interval_ns;
    bool inlines;
    const char *cache_folder; /* of tables of symbols, which are mapped from there; NULL: none */
    Loop *loop;
    /* An interval is complete; borrowed, interval_ref() keeps it. They come in order of time; where
     * one does not begin where the one before ended, what lies between was not followed. */
    void (*on_interval)(void *userdata, Interval *interval);
    void *userdata;
} SourceOptions;

typedef struct SourceStatus {
    bool connected;
    bool hangs;        /* not connected, because no interval was completed for long */
    char problem[256]; /* why not, a sentence; "": none */
    uint64_t until_ns; /* everything before it was handed over; 0: nothing yet */
    uint64_t intervals, samples, lost, gaps, missing_ns; /* of what was followed */
    uint64_t connections; /* how often it connected; each after the first was a break */
    uint64_t skipped;     /* intervals that nobody took in time: they are windows now */
    size_t queued_windows;
} SourceStatus;

int source_new(const SourceOptions *options, Source **ret);
/* Ends the threads. Accepts NULL. False: one hangs and is left behind after some seconds, and what
 * the options have must stay allocated. */
bool source_end(Source *source);
Source *source_free(Source *source);
DEFINE_CLEANUP(Source *, source_free);
/* The thread starts to follow with the interval that is running now. */
int source_start(Source *source);
void source_status(Source *source, SourceStatus *ret);

typedef struct SourceWindow {
    uint64_t since_ns, until_ns; /* CLOCK_REALTIME */
    const Selection *selection;  /* NULL: all; it is copied */
    bool is_urgent;              /* somebody waits: before those that are not */
} SourceWindow;

/* On the thread of the loop. error 0: an interval, borrowed as above, maybe without samples;
 * -ENODATA: nothing was recorded then, or all of it was deleted, and the interval has no profile
 * but says how much is missing and deleted; -EACCES: it is for administrators only, for good;
 * -ENOTCONN: profd is away or refuses, ask again later; -EPIPE: profd began to give it and broke
 * off, as it does when it is restarted, or cannot read it; another negative errno. */
typedef void (*SourceDone)(void *userdata, int error, Interval *interval);
/* -EINVAL: the window is empty, or has not ended. */
int source_window(Source *source, const SourceWindow *window, SourceDone done, void *userdata,
                  SourceJob **ret);
/* Forgets a window that is not done, also from within a callback; `done` is not called any more.
 * Accepts NULL. */
SourceJob *source_job_cancel(SourceJob *job);
