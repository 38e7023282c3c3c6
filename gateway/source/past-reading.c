/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "source/past-reading.h"

#include <errno.h>

#include "util/clock.h"

/*
 * A window ends in the stream where the first sample behind it comes, which is kept for the next
 * one. Samples of neighbouring segments may overlap by what a sweep took; what comes late counts in
 * the window that is read then, so none is lost. The last window of a stream, and one that is read
 * alone, is read to the end of the stream, as is one behind which nothing was recorded.
 *
 * profd gives the newest boot of what it is asked for. A stream that meets a boot or a clock that
 * was set is given up, and its window is read alone; then what earlier boots recorded of it joins.
 *
 * profd denies what a sensitive session recorded, and a stream as a whole if one segment of it is
 * sensitive. So its first window is then read alone as well.
 */

enum { STACKS_MAX = 512 << 10, AHEAD_MAX = 64 };

/* profd cuts a window by the clocks of its segments, so a little more is asked for and cut here. */
#define EDGE_NS (10 * NS_PER_MS)

void past_reading_init(PastReading *reading, const PastReadingOptions *options) {
    *reading = (PastReading){.options = *options};
}

void past_reading_rest(PastReading *reading) {
    const PastReadingOptions options = reading->options;

    profile_builder_free(reading->builder);
    follow_free(reading->follow);
    interval_gaps_done(&reading->gaps);
    past_reading_init(reading, &options);
}

/* Whoever waits for a window gets it at once, and has no other one beside it. */
static bool past_reading_is_exact(const PastWindow *window) {
    return !window->is_urgent && window->since_ns > EDGE_NS;
}

/* A filter is borrowed from one window. */
static bool past_reading_may_go_on(const PastWindow *window) {
    return past_reading_is_exact(window) && selection_kinds(window->selection) == 0;
}

/* Without a stream profd is away or refuses, which ends one day. */
static int past_reading_refused(int r) {
    return r == 0 || r == -ENODATA || r == -ENOMEM || r == -EACCES ? r : -ENOTCONN;
}

/* profd that sends nothing for a minute is as good as away; any other fault is one of the stream,
 * which may meet every reading of the window. */
static int past_reading_broken(int r) {
    bool is_known = r == -ENODATA || r == -ENOMEM || r == -EACCES || r == -ENOTCONN;

    return is_known ? r : r == -ETIMEDOUT ? -ENOTCONN : -EPIPE;
}

/* Begins a stream of the window; one before it in the same interval ends. */
static int past_reading_follow(PastReading *reading, const PastWindow *window, uint64_t end_ns) {
    uint64_t edge_ns = past_reading_is_exact(window) ? EDGE_NS : 0;
    const FollowOptions options = {.session = reading->options.session,
                                   .since_us = (window->since_ns - edge_ns) / NS_PER_US,
                                   .until_us = (end_ns + edge_ns) / NS_PER_US};
    _cleanup_(follow_freep) Follow *follow = NULL;
    char problem[SOURCE_PROBLEM_MAX];
    int r = follow_new(&options, &follow);

    if (r == 0)
        r = past_reading_refused(source_link_follow(reading->options.link, follow, problem));
    if (r == -ENODATA)
        reading->lack = follow_lack(follow);
    if (r == 0)
        r = profile_builder_begin(reading->builder, follow_reader(follow));
    if (r < 0)
        return r;
    follow_free(reading->follow);
    reading->follow = TAKE_PTR(follow);
    reading->end_ns = end_ns;
    reading->real_offset = reading->older_ns = 0;
    reading->is_over = false;
    return 0;
}

static int past_reading_connect(PastReading *reading, const PastWindow *window, uint64_t end_ns) {
    const ProfileOptions options = {.keys = INTERVAL_KEYS,
                                    .stacks_max = STACKS_MAX,
                                    .callers_in_branch = true,
                                    .filter = {.selection = *window->selection}};
    int r;

    past_reading_rest(reading);
    reading->since_ns = window->since_ns;
    r = profile_builder_new(&options, &reading->builder);
    if (r < 0)
        return r;
    namer_ask(reading->options.namer, reading->options.link, false);
    return past_reading_follow(reading, window, end_ns);
}

static uint64_t past_reading_real_ns(PastReading *reading, uint64_t time) {
    if (reading->real_offset == 0)
        reading->real_offset =
            edge_clock_of(reading->options.clock, profile_builder_real_offset(reading->builder));
    return time + reading->real_offset;
}

/* Whether a sample is behind the window, or in the margin before the first one. */
static bool past_reading_leaves_out(PastReading *reading, const PastWindow *window,
                                    const FollowItem *item, bool *ret_is_behind) {
    uint64_t real_ns;

    *ret_is_behind = false;
    if (!past_reading_is_exact(window) || item->record.type != PD_RECORD_SAMPLE ||
        !item->stamp.has_time)
        return false;
    real_ns = past_reading_real_ns(reading, item->stamp.time);
    *ret_is_behind = real_ns >= window->until_ns;
    return *ret_is_behind || real_ns < reading->since_ns;
}

static int past_reading_take_gap(PastReading *reading, const PdStreamMark *mark) {
    if (mark->gap.reason == PD_GAP_REBOOTED) {
        reading->older_ns = mark->gap.to_ns + mark->real_offset;
        reading->older = *mark;
        return 0;
    }
    return interval_gaps_add(&reading->gaps, mark);
}

static void past_reading_take_watermark(PastReading *reading, const PdStreamMark *mark) {
    uint64_t offset = edge_clock_of(reading->options.clock, mark->real_offset);

    if (reading->real_offset != 0 && edge_clock_is_set(reading->real_offset, offset))
        reading->is_torn = true;
    reading->real_offset = offset;
}

/* The next item of the stream; the held one comes first. */
static int past_reading_next(PastReading *reading, FollowItem *ret) {
    if (!reading->has_held)
        return follow_next(reading->follow, ret);
    *ret = reading->held;
    reading->has_held = false;
    return 0;
}

static int past_reading_feed(PastReading *reading, const PastWindow *window) {
    bool is_last = window->until_ns >= reading->end_ns, is_behind;
    FollowItem item;
    int r = 0;

    while (r == 0 && !reading->is_over) {
        r = past_reading_next(reading, &item);
        if (r < 0)
            break;
        if (item.what == FOLLOW_END) {
            reading->is_over = true;
            return follow_is_whole(reading->follow) ? 0 : -EPIPE;
        }
        if (item.what == FOLLOW_WATERMARK)
            past_reading_take_watermark(reading, &item.mark);
        if (item.what == FOLLOW_GAP)
            r = past_reading_take_gap(reading, &item.mark);
        else if (!past_reading_leaves_out(reading, window, &item, &is_behind))
            r = profile_builder_feed(reading->builder, &item.record, &item.stamp);
        else if (is_behind && !is_last) {
            reading->held = item;
            reading->has_held = true;
            break;
        }
    }
    return r;
}

/* Adds what earlier boots recorded of the window. */
static int past_reading_join_older(PastReading *reading, const PastWindow *window) {
    int r = 0;

    while (r == 0 && reading->older_ns > window->since_ns) {
        r = past_reading_follow(reading, window, reading->older_ns);
        if (r == -ENODATA || r == -EACCES) {
            reading->older_ns = 0;
            return interval_gaps_add(&reading->gaps, &reading->older);
        }
        if (r == 0)
            r = past_reading_feed(reading, window);
    }
    return r;
}

/* Says of a window that is not there why. */
static int past_reading_make_nothing(const PastWindow *window, const IntervalMissing *missing,
                                     Interval **ret) {
    int r = interval_new(window->since_ns, window->until_ns, NULL, NULL, ret);

    if (r < 0)
        return r;
    (*ret)->missing_ns = missing->all_ns;
    (*ret)->deleted_ns = missing->deleted_ns;
    return -ENODATA;
}

static int past_reading_finish(PastReading *reading, const PastWindow *window, Interval **ret) {
    uint64_t length_ns = window->until_ns - window->since_ns;
    IntervalMissing missing;
    Profile *profile;
    int r = interval_gaps_take(&reading->gaps, window->since_ns, window->until_ns, &missing);

    if (r == 0)
        r = profile_builder_take(reading->builder, &profile);
    if (r < 0)
        return r;
    /* Before it gets names the state of all processes is not needed any more. */
    if (window->until_ns >= reading->end_ns)
        past_reading_rest(reading);
    if (profile->samples == 0 && missing.all_ns >= length_ns) {
        profile_free(profile);
        return past_reading_make_nothing(window, &missing, ret);
    }
    r = namer_make(reading->options.namer, profile, window->since_ns, window->until_ns, ret);
    if (r < 0)
        return r;
    (*ret)->missing_ns = missing.all_ns;
    (*ret)->deleted_ns = missing.deleted_ns;
    return 0;
}

bool past_reading_has_stream(const PastReading *reading) {
    return reading->follow && reading->at_ns < reading->end_ns;
}

bool past_reading_goes_on(const PastReading *reading, const PastWindow *window) {
    return past_reading_may_go_on(window) && past_reading_has_stream(reading) &&
           reading->at_ns == window->since_ns && window->until_ns <= reading->end_ns;
}

/* profd has nothing of a window, nor of those behind it that were asked for with it. */
static int past_reading_lack(PastReading *reading, const PastWindow *window, Interval **ret) {
    uint64_t length_ns = window->until_ns - window->since_ns;
    const IntervalMissing missing = {.all_ns = length_ns,
                                     .deleted_ns = reading->lack == PD_GAP_DELETED ? length_ns : 0};

    past_reading_rest(reading);
    return past_reading_make_nothing(window, &missing, ret);
}

/* With the stream that goes on, or with one that is asked for up to end_ns. -ESTALE: the window has
 * to be read alone; -EACCES: profd denies it, or one behind it. */
static int past_reading_read(PastReading *reading, const PastWindow *window, uint64_t end_ns,
                             Interval **ret) {
    int r = 0;

    if (!past_reading_goes_on(reading, window))
        r = past_reading_connect(reading, window, end_ns);
    if (r == 0)
        r = past_reading_feed(reading, window);
    if (r == 0 && window->until_ns < reading->end_ns &&
        (reading->is_torn || reading->older_ns > window->since_ns)) {
        past_reading_rest(reading);
        return -ESTALE;
    }
    if (r == 0)
        r = past_reading_join_older(reading, window);
    if (r == -ENODATA)
        return past_reading_lack(reading, window, ret);
    if (r < 0) {
        past_reading_rest(reading);
        return past_reading_broken(r);
    }
    reading->at_ns = window->until_ns;
    r = past_reading_finish(reading, window, ret);
    if (r < 0 && r != -ENODATA)
        past_reading_rest(reading);
    return r == 0 || r == -ENODATA || r == -ENOMEM ? r : -EIO;
}

static uint64_t past_reading_ahead(const PastWindow *window) {
    uint64_t now_ns = clock_ns(CLOCK_REALTIME);
    uint64_t ahead_ns = (AHEAD_MAX - 1) * (window->until_ns - window->since_ns);

    if (!past_reading_may_go_on(window) || window->until_ns >= now_ns)
        return window->until_ns;
    return window->until_ns + MIN(ahead_ns, now_ns - window->until_ns);
}

int past_reading_take(PastReading *reading, const PastWindow *window, Interval **ret) {
    bool goes_on = past_reading_goes_on(reading, window);
    int r = past_reading_read(reading, window, past_reading_ahead(window), ret);

    /* profd may have been restarted since the last window. */
    if ((r == -ENOTCONN || r == -EPIPE) && goes_on)
        r = past_reading_read(reading, window, past_reading_ahead(window), ret);
    /* A denial of everything is not for good: the user may get the group, or the session change. */
    if (r == -EACCES)
        r = source_link_may_follow(reading->options.link, reading->options.session) ? -ESTALE
                                                                                    : -ENOTCONN;
    return r == -ESTALE ? past_reading_read(reading, window, window->until_ns, ret) : r;
}
