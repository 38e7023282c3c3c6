/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "scan/queue.h"

#include <errno.h>
#include <pthread.h>
#include <sys/eventfd.h>

#include "scan/cache/table-cache.h"
#include "scan/symbols-answer.h"
#include "util/clock.h"
#include "util/thread.h"

/*
 * One lock, held only briefly, and two conditions; the reading thread waits on one of them at a
 * time. Both queues are bounded in number and bytes, since hostile processes choose their contents.
 * Waking the loop costs as much as reading a process, so it is woken for many results at once, or
 * when the thread has no other work.
 */

typedef struct ImageList {
    ScanImage *first, **last;
    size_t n;
} ImageList;

/* Work on files, and on processes that are late, rests after it took too much time. Build ids do
 * not wait for tables, which any user can make expensive, and neither waits for what is only kept.
 */
enum { REST_CHECKS, REST_BUILD_IDS, REST_LATE, REST_TABLES, REST_KEPT, RESTS };

static const unsigned rests[RESTS] = {
    [REST_CHECKS] = 1U << SCAN_CHECK,
    [REST_BUILD_IDS] = 1U << SCAN_IMAGE,
    [REST_LATE] = 1U << SCAN_LATE,
    [REST_TABLES] = 1U << SCAN_TABLE,
    [REST_KEPT] = 1U << SCAN_SYMBOLS | 1U << SCAN_CODE_MAP,
};

struct ScanQueue {
    pthread_mutex_t lock;
    pthread_cond_t has_work, has_room;
    bool stops;
    unsigned wanted; /* bits of ScanWork */

    uint32_t pids[SCAN_PROCESSES_MAX]; /* a ring buffer */
    size_t first_pid, n_pids;
    ImageList images[SCAN_WORKS]; /* of the kinds of work on files */
    size_t image_bytes;           /* of all */
    uint64_t after_ns[RESTS], last_until_ns[RESTS];

    ScanResult *results, **last_result;
    size_t n_results, result_bytes;
    bool is_announced;
    int event_fd;
};

ScanResult *scan_result_free(ScanResult *result) {
    if (!result)
        return NULL;
    if (result->kind == SCAN_IS_TABLE && result->data)
        mapped_table_free(((TableAnswer *)result->data)->table);
    if (result->kind == SCAN_IS_SYMBOLS && result->data)
        closep(&((SymbolsAnswer *)result->data)->fd);
    if (result->kind == SCAN_IS_CODE_MAP && result->data) {
        closep(&((CodeMapAnswer *)result->data)->source);
        closep(&((CodeMapAnswer *)result->data)->fd);
    }
    free(result->data);
    free(result);
    return NULL;
}

ScanImage *scan_image_free(ScanImage *image) {
    if (!image)
        return NULL;
    if (image->has_fd)
        closep(&image->fd);
    free(image);
    return NULL;
}

int scan_queue_new(ScanQueue **ret) {
    _cleanup_free_ ScanQueue *queue = calloc(1, sizeof(*queue));

    if (!queue)
        return -ENOMEM;
    for (size_t i = 0; i < SCAN_WORKS; i++)
        queue->images[i].last = &queue->images[i].first;
    queue->last_result = &queue->results;
    queue->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (queue->event_fd < 0)
        return -errno;
    (void)pthread_mutex_init(&queue->lock, NULL);
    thread_condition_init(&queue->has_work);
    (void)pthread_cond_init(&queue->has_room, NULL);
    *ret = TAKE_PTR(queue);
    return 0;
}

static void queue_free_images(ImageList *list) {
    for (ScanImage *image; (image = list->first);) {
        list->first = image->next;
        scan_image_free(image);
    }
}

ScanQueue *scan_queue_free(ScanQueue *queue) {
    if (!queue)
        return NULL;
    for (size_t i = 0; i < SCAN_WORKS; i++)
        queue_free_images(&queue->images[i]);
    for (ScanResult *result; (result = queue->results);) {
        queue->results = result->next;
        scan_result_free(result);
    }
    (void)close(queue->event_fd);
    (void)pthread_cond_destroy(&queue->has_room);
    (void)pthread_cond_destroy(&queue->has_work);
    (void)pthread_mutex_destroy(&queue->lock);
    free(queue);
    return NULL;
}

static void queue_want(ScanQueue *q, ScanWork work) {
    q->wanted |= 1U << work;
    (void)pthread_cond_signal(&q->has_work);
}

void scan_queue_ask(ScanQueue *q, ScanWork work) {
    (void)pthread_mutex_lock(&q->lock);
    queue_want(q, work);
    (void)pthread_mutex_unlock(&q->lock);
}

int scan_queue_ask_process(ScanQueue *q, uint32_t pid) {
    int r = -ENOBUFS;

    (void)pthread_mutex_lock(&q->lock);
    if (q->n_pids < SCAN_PROCESSES_MAX) {
        q->pids[(q->first_pid + q->n_pids++) % SCAN_PROCESSES_MAX] = pid;
        queue_want(q, SCAN_PROCESS);
        r = 0;
    }
    (void)pthread_mutex_unlock(&q->lock);
    return r;
}

int scan_queue_ask_image(ScanQueue *q, ScanImage *image) {
    ImageList *list = &q->images[image->work];
    int r = -ENOBUFS;

    (void)pthread_mutex_lock(&q->lock);
    if (list->n < SCAN_IMAGES_MAX && q->image_bytes < SCAN_IMAGES_MAX_BYTES) {
        image->next = NULL;
        *list->last = image;
        list->last = &image->next;
        list->n++;
        q->image_bytes += image->size;
        queue_want(q, image->work);
        r = 0;
    }
    (void)pthread_mutex_unlock(&q->lock);
    return r;
}

static void queue_set_time(ScanQueue *q, uint64_t times[RESTS], ScanWork work, uint64_t ns) {
    (void)pthread_mutex_lock(&q->lock);
    for (size_t i = 0; i < RESTS; i++)
        if (rests[i] & 1U << work)
            times[i] = ns;
    (void)pthread_mutex_unlock(&q->lock);
}

void scan_queue_rest(ScanQueue *q, ScanWork work, uint64_t until_ns) {
    queue_set_time(q, q->after_ns, work, until_ns);
}

void scan_queue_put_last(ScanQueue *q, ScanWork work, uint64_t until_ns) {
    queue_set_time(q, q->last_until_ns, work, until_ns);
}

void scan_queue_stop(ScanQueue *q) {
    (void)pthread_mutex_lock(&q->lock);
    q->stops = true;
    (void)pthread_cond_signal(&q->has_work);
    (void)pthread_cond_signal(&q->has_room);
    (void)pthread_mutex_unlock(&q->lock);
}

static void queue_take_pid(ScanQueue *q, ScanRequest *ret) {
    ret->pid = q->pids[q->first_pid];
    q->first_pid = (q->first_pid + 1) % SCAN_PROCESSES_MAX;
    if (--q->n_pids == 0)
        q->wanted &= ~(1U << SCAN_PROCESS);
}

static void queue_take_image(ScanQueue *q, ScanRequest *ret) {
    ImageList *list = &q->images[ret->work];

    ret->image = list->first;
    list->first = ret->image->next;
    list->n--;
    q->image_bytes -= ret->image->size;
    if (!list->first) {
        list->last = &list->first;
        q->wanted &= ~(1U << ret->work);
    }
}

static void queue_announce(ScanQueue *q) {
    uint64_t one = 1;

    /* The counter is read again and again, so the write cannot block. */
    if (!q->is_announced && q->results && write(q->event_fd, &one, sizeof(one)) > 0)
        q->is_announced = true;
}

/* Requested work that may be done now. */
static unsigned queue_due(const ScanQueue *q) {
    unsigned due = q->wanted;

    for (size_t i = 0; i < RESTS; i++)
        if (due & rests[i] && clock_monotonic_ns() < q->after_ns[i])
            due &= ~rests[i];
    return due;
}

/* Leaves out what comes last, unless nothing else is due. */
static unsigned queue_prefer(const ScanQueue *q, unsigned due) {
    unsigned first = due;

    for (size_t i = 0; i < RESTS; i++)
        if (due & rests[i] && clock_monotonic_ns() < q->last_until_ns[i])
            first &= ~rests[i];
    return first ?: due;
}

/* When the first work that rests is due. */
static uint64_t queue_next_due_ns(const ScanQueue *q) {
    uint64_t next_ns = UINT64_MAX;

    for (size_t i = 0; i < RESTS; i++)
        if (q->wanted & rests[i])
            next_ns = MIN(next_ns, q->after_ns[i]);
    return next_ns;
}

/* Waits for more work, or until files may be read again. */
static void queue_wait_for_work(ScanQueue *q) {
    uint64_t next_ns = queue_next_due_ns(q);
    struct timespec until = clock_timespec(next_ns);

    queue_announce(q);
    if (q->wanted)
        (void)pthread_cond_timedwait(&q->has_work, &q->lock, &until);
    else
        (void)pthread_cond_wait(&q->has_work, &q->lock);
}

ScanRequest scan_queue_next(ScanQueue *q, bool in_pass) {
    ScanRequest next = {};
    unsigned wanted, pass = in_pass ? 1U << SCAN_PASS : 0;

    (void)pthread_mutex_lock(&q->lock);
    while ((wanted = queue_due(q) | pass) == 0 && !q->stops)
        queue_wait_for_work(q);
    next.work = q->stops ? SCAN_STOP : (ScanWork)__builtin_ctz(queue_prefer(q, wanted));
    if (next.work == SCAN_PROCESS)
        queue_take_pid(q, &next);
    else if (q->images[next.work].n > 0)
        queue_take_image(q, &next);
    else if (next.work == SCAN_PASS)
        next.begins = !in_pass;
    /* A pass that is requested during another one begins after it. */
    if (next.work < SCAN_PROCESS || next.work == SCAN_LATE || next.begins)
        q->wanted &= ~(1U << next.work);
    (void)pthread_mutex_unlock(&q->lock);
    return next;
}

static bool queue_has_room(const ScanQueue *q, const ScanResult *result) {
    return q->n_results == 0 || (q->n_results < SCAN_RESULTS_MAX &&
                                 q->result_bytes + result->size <= SCAN_RESULTS_MAX_BYTES);
}

int scan_queue_put(ScanQueue *q, ScanResult *result) {
    int r = 0;

    (void)pthread_mutex_lock(&q->lock);
    while (!q->stops && !queue_has_room(q, result)) {
        queue_announce(q);
        (void)pthread_cond_wait(&q->has_room, &q->lock);
    }
    if (q->stops) {
        scan_result_free(result);
        r = -ECANCELED;
    } else {
        result->next = NULL;
        *q->last_result = result;
        q->last_result = &result->next;
        q->result_bytes += result->size;
        if (++q->n_results >= SCAN_ANNOUNCED || result->kind != SCAN_IS_PROCESS)
            queue_announce(q);
    }
    (void)pthread_mutex_unlock(&q->lock);
    return r;
}

int scan_queue_fd(const ScanQueue *q) {
    return q->event_fd;
}

static ScanResult *queue_take_chain(ScanQueue *q, size_t max) {
    ScanResult *first = q->results, *last = NULL;

    for (; q->results && max > 0; max--) {
        last = q->results;
        q->results = last->next;
        q->result_bytes -= last->size;
        q->n_results--;
    }
    if (last)
        last->next = NULL;
    if (!q->results)
        q->last_result = &q->results;
    return first;
}

ScanResult *scan_queue_take(ScanQueue *q, size_t max) {
    ScanResult *chain;
    uint64_t count;

    (void)pthread_mutex_lock(&q->lock);
    chain = queue_take_chain(q, max);
    if (!q->results && q->is_announced)
        q->is_announced = read(q->event_fd, &count, sizeof(count)) < 0;
    (void)pthread_cond_signal(&q->has_room);
    (void)pthread_mutex_unlock(&q->lock);
    return chain;
}
