/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "process/history/history-private.h"

/*
 * The lists of a history: entries in the list of all and in that of their process, and emitted
 * processes in the list of their process and in that of their recording. The other files build on
 * these lists, which know nothing about the meaning of a record.
 */

Entry *entry_new(History *h, size_t size) {
    Entry *e = budget_alloc(&h->strings.budget, sizeof(*e) + size);

    if (!e) {
        h->dropped++;
        return NULL;
    }
    e->size = (uint32_t)size;
    e->order = ++h->serial;
    return e;
}

Entry *entry_free(History *h, Entry *e) {
    if (!e)
        return NULL;
    images_put(&h->strings, e->image);
    return budget_free(&h->strings.budget, e, sizeof(*e) + e->size);
}

PdRecord entry_parse(const Entry *e, PdBody *ret) {
    PdRecord record = pd_record_at(e->record, false);

    /* Cannot fail: the record was parsed when it was fed. */
    if (pd_record_parse(&record, NULL, ret) < 0)
        memset(ret, 0, sizeof(*ret));
    return record;
}

static void history_list_link_to_process(Entry *e) {
    Queue *q = &e->process->queue;
    Entry **at = &q->first;

    if (q->last && q->last->time <= e->time)
        at = &q->last->next;
    else
        while (*at && (*at)->time <= e->time)
            at = &(*at)->next;
    e->next = *at;
    *at = e;
    if (!e->next)
        q->last = e;
}

void entry_link(History *h, Entry *e, Entry *hint) {
    Entry *at = hint ? hint : h->newest;

    while (at && at->time > e->time)
        at = at->older;
    while (at && at->newer && at->newer->time <= e->time)
        at = at->newer;
    e->older = at;
    e->newer = at ? at->newer : h->oldest;
    *(e->newer ? &e->newer->older : &h->newest) = e;
    *(at ? &at->newer : &h->oldest) = e;
    h->n_entries++;
    history_list_link_to_process(e);
}

void entry_detach(History *h, Entry *e) {
    Queue *q = &e->process->queue;
    Entry *before = NULL;

    *(e->older ? &e->older->newer : &h->oldest) = e->newer;
    *(e->newer ? &e->newer->older : &h->newest) = e->older;
    h->n_entries--;
    for (Entry *at = q->first; at != e; at = at->next)
        before = at;
    *(before ? &before->next : &q->first) = e->next;
    if (!e->next)
        q->last = before;
    if (e->process->birth == e)
        e->process->birth = NULL;
}

void entry_unlink(History *h, Entry *e) {
    entry_detach(h, e);
    entry_free(h, e);
}

EmittedProcess *emitted_process_free(EmittedProcess *m) {
    EmittedProcess **at;

    for (at = &m->process->emitted; *at != m; at = &(*at)->next)
        ;
    *at = m->next;
    *(m->before ? &m->before->after : &m->emission->emitted) = m->after;
    if (m->after)
        m->after->before = m->before;
    return budget_free(&m->emission->history->strings.budget, m, sizeof(*m));
}

/*
 * The processes whose last answer holds maps, in the order in which they were last needed; beyond a
 * number of them the oldest answer is dropped. All records are in one budget: so many processes
 * that are sampled in turn have few records each, so that it costs little to look them up anew.
 */
enum { SPACES_MAX = 1024 };

static void history_list_remove_space(History *h, Process *p) {
    TAILQ_REMOVE(&h->spaces, p, space.in_spaces);
    h->n_spaces--;
}

void space_release(History *h, Process *p) {
    if (p->space.maps)
        history_list_remove_space(h, p);
    p->space.maps = maps_put(&h->strings, p->space.maps);
    p->space.generation = 0;
}

void spaces_release(History *h) {
    while (!TAILQ_EMPTY(&h->spaces))
        space_release(h, TAILQ_FIRST(&h->spaces));
}

void space_list(History *h, Process *p, bool had_maps) {
    if (had_maps)
        history_list_remove_space(h, p);
    if (!p->space.maps)
        return;
    TAILQ_INSERT_HEAD(&h->spaces, p, space.in_spaces);
    if (++h->n_spaces > SPACES_MAX)
        space_release(h, TAILQ_LAST(&h->spaces, SpaceList));
}
