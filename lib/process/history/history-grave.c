/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>

#include "process/history/history-private.h"

/*
 * What has ended is remembered for a while: the kernel reports an exit before it frees the address
 * space, which may take long, and samples from that time still have pid and tid. So a process or
 * thread is forgotten two seconds after the floor has passed its last record, its EXIT or a sample.
 * The same holds for a process that is known only from a sample, and for the mappings from before
 * an exec, because samples from the loading of the new program still have addresses of the old one.
 */

#define GRACE_NS 2000000000ULL

/* Space at the front is reclaimed only when few entries have to move. */
static int history_grave_make_room(History *h) {
    size_t left = h->n_graves - h->first_grave, n = MAX(h->graves_allocated * 2, (size_t)64);
    Grave *graves = h->graves;

    if (h->n_graves < h->graves_allocated)
        return 0;
    if (left > 0 && h->first_grave > 0)
        memmove(graves, graves + h->first_grave, left * sizeof(*graves));
    h->first_grave = 0;
    h->n_graves = left;
    if (left < h->graves_allocated / 2)
        return 0;
    graves = budget_resize(&h->strings.budget, graves, h->graves_allocated * sizeof(*graves),
                           n * sizeof(*graves));
    if (!graves)
        return left < h->graves_allocated ? 0 : -ENOMEM;
    h->graves = graves;
    h->graves_allocated = n;
    return 0;
}

static int history_grave_bury(History *h, const Process *p, uint32_t tid, uint64_t time) {
    if (history_grave_make_room(h) < 0) {
        h->dropped++;
        return -ENOMEM;
    }
    h->graves[h->n_graves++] =
        (Grave){.due_ns = time + GRACE_NS, .serial = p->serial, .pid = p->pid, .tid = tid};
    return 0;
}

Process *process_end(History *h, Process *p, uint64_t time) {
    bool first = p->ended_ns == 0;

    p->ended_ns = MAX(p->ended_ns, time);
    if (!first || history_grave_bury(h, p, p->pid, time) == 0)
        return p;
    process_free(h, p);
    return NULL;
}

void task_end(History *h, Task *task, uint64_t time) {
    if (task->ended_ns != 0)
        return;
    task->ended_ns = time;
    task->process->n_living--;
    if (history_grave_bury(h, task->process, task->tid, time) < 0)
        task_free(h, task);
}

void process_exec(History *h, Process *p, uint64_t time) {
    maps_put(&h->strings, p->before_exec);
    p->before_exec = TAKE_PTR(p->maps);
    p->exec_ns = time;
    if (p->before_exec && history_grave_bury(h, p, 0, time) < 0)
        p->before_exec = maps_put(&h->strings, p->before_exec);
}

static void history_grave_expire_exec(History *h, Process *p) {
    if (p && p->exec_ns + GRACE_NS <= h->floor_ns)
        p->before_exec = maps_put(&h->strings, p->before_exec);
}

static void history_grave_expire(History *h, const Grave *grave) {
    Process *p = process_find_serial(h, grave->pid, grave->serial);
    Task *task = p && grave->tid != p->pid ? task_find(h, p, grave->tid) : NULL;
    uint64_t *ended = task ? &task->ended_ns : p && grave->tid == p->pid ? &p->ended_ns : NULL;

    if (grave->tid == 0) {
        history_grave_expire_exec(h, p);
        return;
    }
    if (!ended || *ended == 0)
        return;
    if (*ended + GRACE_NS > h->floor_ns && history_grave_bury(h, p, grave->tid, *ended) == 0)
        return;
    if (task)
        task_free(h, task);
    else
        process_free(h, p);
}

void graves_expire(History *h) {
    size_t n = h->n_graves - h->first_grave;

    /* Entries that are added again go to the end. */
    while (n-- > 0 && h->graves[h->first_grave].due_ns <= h->floor_ns) {
        Grave grave = h->graves[h->first_grave++];

        history_grave_expire(h, &grave);
    }
    if (h->first_grave == h->n_graves) {
        h->graves =
            budget_free(&h->strings.budget, h->graves, h->graves_allocated * sizeof(*h->graves));
        h->first_grave = h->n_graves = h->graves_allocated = 0;
    }
}
