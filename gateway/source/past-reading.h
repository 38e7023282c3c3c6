/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * How one window after the other is read from profd. To find the beginning of a window, profd reads
 * its segment from the begin, which may hold hours. So the stream of a window goes on behind it,
 * and a window that begins where the last one ended takes what comes next. All of it is for one
 * thread.
 */

#include "process/selection.h"
#include "profile/profile-builder.h"
#include "source/cutter.h"
#include "source/interval-gap.h"
#include "source/namer.h"

typedef struct PastWindow {
    uint64_t since_ns, until_ns; /* CLOCK_REALTIME */
    const Selection *selection;
    bool is_urgent; /* somebody waits for it */
} PastWindow;

typedef struct PastReadingOptions {
    const char *session; /* NULL: the default one; borrowed */
    Namer *namer;
    EdgeClock *clock;
    SourceLink *link;
} PastReadingOptions;

typedef struct PastReading {
    PastReadingOptions options;
    Follow *follow; /* NULL: there is no stream that goes on */
    ProfileBuilder *builder;
    IntervalGaps gaps;
    uint64_t since_ns;    /* of its first window */
    uint64_t at_ns;       /* the end of its last one */
    uint64_t end_ns;      /* what was asked for; windows of it end here at the latest */
    uint64_t real_offset; /* by which samples are cut; 0: not known yet */
    uint64_t older_ns;    /* the end of what an earlier boot recorded; 0: nothing */
    PdStreamMark older;   /* the gap that it leaves */
    PdGapReason lack;     /* why profd has nothing of what was asked for last */
    bool is_torn;         /* the wall clock was set */
    bool has_held, is_over;
    FollowItem held; /* the first sample behind the last window */
} PastReading;

void past_reading_init(PastReading *reading, const PastReadingOptions *options);
/* Whether there is a stream that a window may go on with, and whether this one does. */
bool past_reading_has_stream(const PastReading *reading);
bool past_reading_goes_on(const PastReading *reading, const PastWindow *window);
/* Ends the stream; the next window begins another one. */
void past_reading_rest(PastReading *reading);
/* The interval of a window. window->selection is not NULL. -ENODATA: nothing was recorded then,
 * and the interval has no profile; -EACCES: profd denies this window and no other; -ENOTCONN: profd
 * is away or refuses; -EPIPE: its stream of the window breaks off or cannot be read; -EIO: no
 * profile can be made of it; -ENOMEM. */
int past_reading_take(PastReading *reading, const PastWindow *window, Interval **ret);
