/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "source/past.h"

#include <errno.h>
#include <string.h>
#include <sys/queue.h>

#include "source/past-reading.h"
#include "source/selection-copy.h"
#include "util/clock.h"
#include "util/file.h"
#include "util/thread.h"

/*
 * Jobs wait in two lists, those that somebody waits for come first. One window is read at a time,
 * and the next one only when the main thread has taken the last, so no more than one interval of
 * the past is in memory here. A job that is cancelled while it is read breaks its stream.
 *
 * Where several destinations work off a backlog, the windows of one come one after the other, so
 * that they share a stream: the others wait while the next one of these is likely to come. A stream
 * that nobody goes on with ends.
 */

/* How long the next window of a stream is waited for: as long as the stream took to open. */
#define PATIENCE_NS     (500 * NS_PER_MS)
#define PATIENCE_MAX_NS (5 * NS_PER_SECOND)
#define REST_NS         (20 * NS_PER_SECOND)

/* How long its end is waited for: longer than it waits for a connection, twice. */
enum { PAST_END_S = 12 };

struct PastJob {
    TAILQ_ENTRY(PastJob) entry;
    PastWindow window;
    Selection selection; /* of the window */
    bool is_cancelled;
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
    PastReading reading; /* of the thread alone */
    uint64_t opening_ns; /* until the first window of its stream was read; likewise */

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
    past_reading_init(&past->reading, &(PastReadingOptions){.session = options->session,
                                                            .namer = options->namer,
                                                            .clock = options->clock,
                                                            .link = &past->link});
    (void)pthread_mutex_init(&past->lock, NULL);
    thread_condition_init(&past->changed);
    TAILQ_INIT(&past->urgent);
    TAILQ_INIT(&past->other);
    *ret = past;
    return 0;
}

/* -- the queue ------------------------------------------------------------------------------- */

/* The job that is done next; NULL: none yet. The caller holds the lock. */
static PastJob *past_choose(Past *past, bool is_patient) {
    PastJob *job = TAILQ_FIRST(&past->urgent);

    if (past->done || job)
        return past->done ? NULL : job;
    TAILQ_FOREACH(job, &past->other, entry)
        if (past_reading_goes_on(&past->reading, &job->window))
            return job;
    return is_patient ? NULL : TAILQ_FIRST(&past->other);
}

/* Waits for it, and lets the stream rest in between. NULL: stop. The caller holds the lock. */
static PastJob *past_wait(Past *past) {
    uint64_t since_ns = clock_monotonic_ns(), now_ns = since_ns;
    uint64_t opening_ns = MIN(past->opening_ns, PATIENCE_MAX_NS);
    uint64_t patience_ns = MAX(opening_ns, PATIENCE_NS);
    PastJob *job = NULL;

    while (!past->stop) {
        bool goes_on = past_reading_has_stream(&past->reading);
        bool is_patient = goes_on && now_ns < since_ns + patience_ns;
        struct timespec end = clock_timespec(since_ns + (is_patient ? patience_ns : REST_NS));

        job = past_choose(past, is_patient);
        if (job)
            break;
        if (!goes_on)
            (void)pthread_cond_wait(&past->changed, &past->lock);
        else if (now_ns >= since_ns + REST_NS)
            past_reading_rest(&past->reading);
        else
            (void)pthread_cond_timedwait(&past->changed, &past->lock, &end);
        now_ns = clock_monotonic_ns();
    }
    return job;
}

/* NULL: stop. */
static PastJob *past_next(Past *past) {
    PastJob *job;

    (void)pthread_mutex_lock(&past->lock);
    job = past_wait(past);
    if (job) {
        TAILQ_REMOVE(job->window.is_urgent ? &past->urgent : &past->other, job, entry);
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
    /* Its stream is broken. */
    if (job->is_cancelled)
        past_reading_rest(&past->reading);
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
        bool goes_on = past_reading_goes_on(&past->reading, &job->window);
        uint64_t begin_ns = clock_monotonic_ns();
        Interval *interval = NULL;
        int r = past_reading_take(&past->reading, &job->window, &interval);

        if (!goes_on)
            past->opening_ns = clock_monotonic_ns() - begin_ns;
        past_put(past, job, r, interval);
    }
    past_reading_rest(&past->reading);
    return NULL;
}

int past_start(Past *past) {
    int r = thread_start(&(ThreadOptions){.name = "window", .nice = THREAD_NICE_LAST}, past_run,
                         past, &past->thread);

    past->is_running = r == 0;
    return r;
}

int past_add(Past *past, const PastWindow *window, void *owner, PastJob **ret) {
    PastJob *job = calloc(1, sizeof(*job));
    int r = job ? selection_copy(window->selection, &job->selection) : -ENOMEM;

    if (r < 0) {
        free(job);
        return r;
    }
    job->window = *window;
    job->window.selection = &job->selection;
    job->owner = owner;
    (void)pthread_mutex_lock(&past->lock);
    TAILQ_INSERT_TAIL(job->window.is_urgent ? &past->urgent : &past->other, job, entry);
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
        TAILQ_REMOVE(job->window.is_urgent ? &past->urgent : &past->other, job, entry);
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

bool past_end(Past *past) {
    if (!past)
        return true;
    (void)pthread_mutex_lock(&past->lock);
    past->stop = true;
    (void)pthread_cond_signal(&past->changed);
    source_link_break(&past->link);
    (void)pthread_mutex_unlock(&past->lock);
    if (past->is_running && !thread_end(past->thread, PAST_END_S))
        return false;
    past_drop_all(&past->urgent);
    past_drop_all(&past->other);
    past_job_free(past->done);
    source_link_done(&past->link);
    (void)pthread_cond_destroy(&past->changed);
    (void)pthread_mutex_destroy(&past->lock);
    free(past);
    return true;
}
