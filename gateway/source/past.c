/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "source/past.h"

#include <errno.h>
#include <string.h>
#include <sys/queue.h>

#include "profile/profile-builder.h"
#include "source/interval-gap.h"
#include "source/selection-copy.h"
#include "util/clock.h"
#include "util/file.h"
#include "util/thread.h"

/*
 * Jobs wait in two lists, those that somebody waits for come first. One window is read at a time,
 * and the next one only when the main thread has taken the last, so no more than one interval of
 * the past is in memory here. A job that is cancelled while it is read breaks its stream.
 */

enum { STACKS_MAX = 512 << 10 };

/* profd cuts a window by the clocks of its segments, so a little more is asked for and cut here. */
#define EDGE_NS (10 * NS_PER_MS)

struct PastJob {
    TAILQ_ENTRY(PastJob) entry;
    uint64_t since_ns, until_ns;
    Selection selection;
    bool is_urgent, is_cancelled;
    void *owner;
    int error;
    Interval *interval;
};

TAILQ_HEAD(PastJobs, PastJob);

struct Past {
    PastOptions options;
    SourceLink link;
    pthread_t thread;
    bool is_running;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool stop;
    struct PastJobs urgent, other;
    size_t n_jobs;
    PastJob *current, *done; /* NULL: none */
};

static PastJob *past_job_free(PastJob *job) {
    if (!job)
        return NULL;
    selection_copy_done(&job->selection);
    interval_unref(job->interval);
    free(job);
    return NULL;
}

int past_new(const PastOptions *options, Past **ret) {
    Past *past = calloc(1, sizeof(*past));

    if (!past)
        return -ENOMEM;
    past->options = *options;
    source_link_init(&past->link, options->socket);
    (void)pthread_mutex_init(&past->lock, NULL);
    (void)pthread_cond_init(&past->changed, NULL);
    TAILQ_INIT(&past->urgent);
    TAILQ_INIT(&past->other);
    *ret = past;
    return 0;
}

/* -- reading a window ------------------------------------------------------------------------ */

typedef struct PastReading {
    Follow *follow;
    ProfileBuilder *builder;
    IntervalGaps gaps;
    uint64_t real_offset; /* by which samples are cut; 0: not known yet */
    uint64_t older_ns;    /* the end of what an earlier boot recorded of the window; 0: nothing */
} PastReading;

static void past_reading_done(PastReading *reading) {
    profile_builder_free(reading->builder);
    follow_free(reading->follow);
    interval_gaps_done(&reading->gaps);
}

/* Whoever waits for a window gets it at once, and has no other one beside it. */
static bool past_is_exact(const PastJob *job) {
    return !job->is_urgent && job->since_ns > EDGE_NS;
}

static int past_connect(Past *past, const PastJob *job, PastReading *reading) {
    uint64_t edge_ns = past_is_exact(job) ? EDGE_NS : 0;
    const ProfileOptions options = {.keys = INTERVAL_KEYS,
                                    .stacks_max = STACKS_MAX,
                                    .callers_in_branch = true,
                                    .filter = {.selection = job->selection}};
    const FollowOptions follow = {.session = past->options.session,
                                  .since_us = (job->since_ns - edge_ns) / NS_PER_US,
                                  .until_us = (job->until_ns + edge_ns) / NS_PER_US};
    char problem[SOURCE_PROBLEM_MAX];
    int r = profile_builder_new(&options, &reading->builder);

    if (r == 0)
        r = follow_new(&follow, &reading->follow);
    if (r < 0)
        return r;
    namer_ask(past->options.namer, &past->link, false);
    r = source_link_follow(&past->link, reading->follow, problem);
    return r < 0 ? r : profile_builder_begin(reading->builder, follow_reader(reading->follow));
}

/* Whether a sample is in the margin. */
static bool past_leaves_out(Past *past, const PastJob *job, PastReading *reading,
                            const FollowItem *item) {
    uint64_t real_ns;

    if (!past_is_exact(job) || item->record.type != PD_RECORD_SAMPLE || !item->stamp.has_time)
        return false;
    if (reading->real_offset == 0)
        reading->real_offset =
            edge_clock_of(past->options.clock, profile_builder_real_offset(reading->builder));
    real_ns = item->stamp.time + reading->real_offset;
    return real_ns < job->since_ns || real_ns >= job->until_ns;
}

static int past_take_gap(PastReading *reading, const PdStreamMark *mark) {
    if (mark->gap.reason == PD_GAP_REBOOTED)
        reading->older_ns = mark->gap.to_ns + mark->real_offset;
    return interval_gaps_add(&reading->gaps, mark);
}

static int past_feed(Past *past, const PastJob *job, PastReading *reading) {
    FollowItem item;
    int r = 0;

    while (r == 0) {
        r = follow_next(reading->follow, &item);
        if (r < 0 || item.what == FOLLOW_END)
            break;
        if (item.what == FOLLOW_WATERMARK)
            reading->real_offset = edge_clock_of(past->options.clock, item.mark.real_offset);
        if (item.what == FOLLOW_GAP)
            r = past_take_gap(reading, &item.mark);
        else if (!past_leaves_out(past, job, reading, &item))
            r = profile_builder_feed(reading->builder, &item.record, &item.stamp);
    }
    return r == 0 && !follow_is_whole(reading->follow) ? -ENOTCONN : r;
}

static int past_finish(Past *past, const PastJob *job, PastReading *reading, Interval **ret) {
    uint64_t missing_ns;
    Profile *profile;
    int r = interval_gaps_take(&reading->gaps, job->since_ns, job->until_ns, &missing_ns);

    if (r == 0)
        r = profile_builder_take(reading->builder, &profile);
    if (r < 0)
        return r;
    if (profile->samples == 0 && missing_ns >= job->until_ns - job->since_ns) {
        profile_free(profile);
        return -ENODATA;
    }
    /* Before it gets names the state of all processes is not needed any more. */
    reading->builder = profile_builder_free(reading->builder);
    r = namer_make(past->options.namer, profile, job->since_ns, job->until_ns, ret);
    if (r == 0)
        (*ret)->missing_ns = missing_ns;
    return r;
}

static int past_read_boot(Past *past, const PastJob *job, Interval **ret, uint64_t *ret_older_ns) {
    _cleanup_(past_reading_done) PastReading reading = {};
    int r = past_connect(past, job, &reading);

    if (r == 0)
        r = past_feed(past, job, &reading);
    *ret_older_ns = reading.older_ns;
    if (r == 0)
        r = past_finish(past, job, &reading, ret);
    return r == 0 || r == -ENODATA || r == -ENOMEM ? r : -ENOTCONN;
}

/* profd gives the part of the newest boot. Where nobody waits, the part before it is the answer,
 * and who asked asks for the rest. */
static int past_read(Past *past, const PastJob *job, Interval **ret) {
    Interval *newer = NULL;
    PastJob older = *job;
    uint64_t none;
    int r = past_read_boot(past, job, &newer, &older.until_ns), error = -ENODATA;

    if ((r == 0 || r == -ENODATA) && !job->is_urgent && older.until_ns > job->since_ns)
        error = past_read_boot(past, &older, ret, &none);
    if (error == -ENODATA) {
        *ret = newer;
        return r;
    }
    interval_unref(newer);
    return error;
}

/* -- the queue ------------------------------------------------------------------------------- */

/* Waits for the next job; NULL: stop. */
static PastJob *past_next(Past *past) {
    PastJob *job = NULL;

    (void)pthread_mutex_lock(&past->lock);
    while (!past->stop && (past->done || past->n_jobs == 0))
        (void)pthread_cond_wait(&past->changed, &past->lock);
    if (!past->stop) {
        struct PastJobs *jobs = TAILQ_EMPTY(&past->urgent) ? &past->other : &past->urgent;

        job = TAILQ_FIRST(jobs);
        TAILQ_REMOVE(jobs, job, entry);
        past->n_jobs--;
        past->current = job;
        source_link_mend(&past->link);
    }
    (void)pthread_mutex_unlock(&past->lock);
    return job;
}

static void past_put(Past *past, PastJob *job, int error, Interval *interval) {
    static const uint64_t one = 1;

    (void)pthread_mutex_lock(&past->lock);
    past->current = NULL;
    job->error = error;
    job->interval = interval;
    if (!job->is_cancelled)
        past->done = TAKE_PTR(job);
    if (past->done)
        (void)file_write_all(past->options.wake_fd, &one, sizeof(one));
    (void)pthread_mutex_unlock(&past->lock);
    past_job_free(job);
}

static void *past_run(void *userdata) {
    Past *past = userdata;
    PastJob *job;

    while ((job = past_next(past))) {
        Interval *interval = NULL;
        int r = past_read(past, job, &interval);

        past_put(past, job, r, interval);
    }
    return NULL;
}

int past_start(Past *past) {
    int r = thread_start(&(ThreadOptions){.name = "window", .nice = THREAD_NICE_LAST}, past_run,
                         past, &past->thread);

    past->is_running = r == 0;
    return r;
}

int past_add(Past *past, const PastWindow *window, PastJob **ret) {
    PastJob *job = calloc(1, sizeof(*job));
    int r = job ? selection_copy(window->selection, &job->selection) : -ENOMEM;

    if (r < 0) {
        free(job);
        return r;
    }
    job->since_ns = window->since_ns;
    job->until_ns = window->until_ns;
    job->is_urgent = window->is_urgent;
    job->owner = window->owner;
    (void)pthread_mutex_lock(&past->lock);
    TAILQ_INSERT_TAIL(job->is_urgent ? &past->urgent : &past->other, job, entry);
    past->n_jobs++;
    (void)pthread_cond_signal(&past->changed);
    (void)pthread_mutex_unlock(&past->lock);
    *ret = job;
    return 0;
}

void past_cancel(Past *past, PastJob *job) {
    (void)pthread_mutex_lock(&past->lock);
    if (past->current == job) {
        job->is_cancelled = true;
        source_link_break(&past->link);
        job = NULL;
    } else if (past->done == job) {
        past->done = NULL;
        (void)pthread_cond_signal(&past->changed);
    } else {
        TAILQ_REMOVE(job->is_urgent ? &past->urgent : &past->other, job, entry);
        past->n_jobs--;
    }
    (void)pthread_mutex_unlock(&past->lock);
    past_job_free(job);
}

bool past_take(Past *past, void **ret_owner, int *ret_error, Interval **ret_interval) {
    PastJob *job;

    (void)pthread_mutex_lock(&past->lock);
    job = TAKE_PTR(past->done);
    (void)pthread_cond_signal(&past->changed);
    (void)pthread_mutex_unlock(&past->lock);
    if (!job)
        return false;
    *ret_owner = job->owner;
    *ret_error = job->error;
    *ret_interval = TAKE_PTR(job->interval);
    past_job_free(job);
    return true;
}

size_t past_count(Past *past) {
    size_t n;

    (void)pthread_mutex_lock(&past->lock);
    n = past->n_jobs + (past->current && !past->current->is_cancelled);
    (void)pthread_mutex_unlock(&past->lock);
    return n;
}

static void past_drop_all(struct PastJobs *jobs) {
    PastJob *job;

    while ((job = TAILQ_FIRST(jobs))) {
        TAILQ_REMOVE(jobs, job, entry);
        past_job_free(job);
    }
}

Past *past_free(Past *past) {
    if (!past)
        return NULL;
    (void)pthread_mutex_lock(&past->lock);
    past->stop = true;
    (void)pthread_cond_signal(&past->changed);
    source_link_break(&past->link);
    (void)pthread_mutex_unlock(&past->lock);
    if (past->is_running)
        (void)pthread_join(past->thread, NULL);
    past_drop_all(&past->urgent);
    past_drop_all(&past->other);
    past_job_free(past->done);
    source_link_done(&past->link);
    (void)pthread_cond_destroy(&past->changed);
    (void)pthread_mutex_destroy(&past->lock);
    free(past);
    return NULL;
}
