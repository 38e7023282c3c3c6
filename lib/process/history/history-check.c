/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "process/history/history-private.h"
#include "util/macro.h"

/*
 * Files that are overwritten in place: device, inode and generation stay, and the build id is
 * another one. So when a file with a known build id is mapped anew, a check asks whether it is
 * still the file from which the build id was read. One check, which begins after a sweep, covers
 * all mappings of the file up to that sweep, in all processes.
 *
 * Recordings get the known build id at once. The floor stays below the mapping until the answer
 * comes, so that a correction has the mapping's own time. Usually the answer is there before the
 * next sweep, and the floor is never later than without a check.
 *
 * - The file is the same: its build id holds for all mappings up to the sweep.
 * - It has changed: what was mapped after the change moves to a new image, which is looked up as a
 *   new file is. The old image keeps what was mapped before the check that preceded the change.
 * - That is not known, because the process has ended or the answer is late: the mappings move to an
 *   image without a build id. A later check that finds the file unchanged proves them, too.
 */

#define CHECK_WAIT_NS 3000000000ULL

enum { CHECKS_MAX = 1024 };

static void history_check_free(History *h, ImageCheck *check) {
    ProcessImage *image = check->image;

    LIST_REMOVE(check, in_checks);
    h->n_checks--;
    image->check = NULL;
    budget_free(&h->strings.budget, check, sizeof(*check));
    images_put(&h->strings, image);
}

static ImageCheck *history_check_of(History *h, ProcessImage *image) {
    ImageCheck *check = image->check;

    if (check || h->n_checks == CHECKS_MAX)
        return check;
    check = budget_alloc(&h->strings.budget, sizeof(*check));
    if (!check)
        return NULL;
    check->image = image_ref(image);
    image->check = check;
    LIST_INSERT_HEAD(&h->checks, check, in_checks);
    h->n_checks++;
    return check;
}

static void history_check_move(History *h, Entry *e, ProcessImage *from, ProcessImage *to) {
    e->image = to ? image_ref(to) : NULL;
    images_put(&h->strings, from);
}

/* The same recordings name `to`, and must correct that in the next settle. */
static void history_check_correct(History *h, const ImageCheck *check, ProcessImage *to) {
    for (size_t i = 0; i < EMISSIONS_MAX; i++)
        if (h->emissions[i] && check->shown & h->emissions[i]->slot)
            (void)emission_owe(h->emissions[i], to);
    image_set_due(h, to);
    if (!to->is_due)
        return;
    h->correct_ns = MIN(h->correct_ns, check->first_ns ?: check->later_ns);
    h->correct_since_ns = MIN(h->correct_since_ns, check->since_ns ?: check->later_since_ns);
}

/* Moves what was mapped between the last proof and `until_ns`. Returns when the last of that was
 * mapped; 0: nothing was. */
static uint64_t history_check_move_until(History *h, ProcessImage *image, ProcessImage *to,
                                         uint64_t until_ns) {
    uint64_t last_ns = 0;

    for (Entry *e = h->newest; e && e->time > image->sure_ns; e = e->older)
        if (e->image == image && e->time <= until_ns) {
            history_check_move(h, e, image, to);
            last_ns = MAX(last_ns, e->time);
        }
    if (last_ns == 0)
        return 0;
    h->dropped += !to;
    h->generation++;
    spaces_release(h);
    return last_ns;
}

/* Mappings up to then get an image without a build id, because nothing proves theirs. */
static void history_check_set_apart(History *h, ProcessImage *image, uint64_t until_ns) {
    ImageCheck *check = image->check;
    uint64_t last_ns;

    if (!check || until_ns <= image->sure_ns)
        return;
    if (!image->unproven && (image->unproven = images_split(&h->strings, image))) {
        image->unproven->is_apart = true;
        image->unproven->tries = TRIES_MAX;
    }
    last_ns = history_check_move_until(h, image, image->unproven, until_ns);
    if (last_ns > 0 && image->unproven) {
        image_count_unidentified(h, image->unproven, path_is_file(name_bytes(image->path)));
        history_check_correct(h, check, image->unproven);
    }
    image->unproven_ns = MAX(image->unproven_ns, last_ns);
    image->sure_ns = until_ns;
}

static void history_check_ask(History *h, const ImageCheck *check) {
    image_ask(h, check->image, check->pid, check->start, check->end);
}

/* Ends the check of all mappings up to then, and asks again if there are later ones. */
static void history_check_advance(History *h, ProcessImage *image, uint64_t until_ns) {
    ImageCheck *check = image->check;

    if (!check)
        return;
    if (check->first_ns > until_ns) {
        history_check_ask(h, check);
        return;
    }
    if (check->later_ns == 0) {
        history_check_free(h, check);
        return;
    }
    check->first_ns = check->later_ns;
    check->since_ns = check->later_since_ns;
    check->later_ns = check->later_since_ns = 0;
    history_check_ask(h, check);
}

static void history_check_prove(History *h, ProcessImage *image, uint64_t until_ns) {
    image->sure_ns = MAX(image->sure_ns, until_ns);
    if (image->unproven && image->unproven_ns <= until_ns) {
        image_found(h, image->unproven,
                    (Bytes){.data = image->found_id, .size = image->found_id_size});
        image->unproven = images_put(&h->strings, image->unproven);
    }
}

/* A new image for what was mapped since the change, and will be. */
static void history_check_replace(History *h, ProcessImage *image) {
    ProcessImage *newer = images_split(&h->strings, image);
    ImageCheck *check = image->check;

    image->is_apart = true;
    image->unproven = images_put(&h->strings, image->unproven);
    (void)history_check_move_until(h, image, newer, UINT64_MAX);
    for (size_t i = 0; i < h->n_fed; i++)
        if (h->fed[i]->image == image)
            history_check_move(h, h->fed[i], image, newer);
    if (newer)
        image_retain(h, newer);
    if (newer && check) {
        image_want(h, newer, check->pid, check->start, check->end);
        history_check_correct(h, check, newer);
        if (newer->is_due)
            image_wait(h, newer, (check->first_ns ?: check->later_ns) - 1);
    }
    images_put(&h->strings, newer);
    if (check)
        history_check_free(h, check);
}

bool history_set_checked(History *h, uint64_t number, HistoryVerdict verdict, uint64_t changed_ns,
                         HistoryWanted *ret_changed) {
    Wanted *slot = wanted_find(h, number);
    ProcessImage *image = slot && slot->checks ? slot->image : NULL;

    if (!image)
        return false;
    image->asked = image->is_running = false;
    if (verdict == HISTORY_CHANGED) {
        wanted_describe(slot, ret_changed);
        history_check_set_apart(h, image, changed_ns);
        history_check_replace(h, image);
    } else {
        if (verdict == HISTORY_SAME)
            history_check_prove(h, image, slot->asked_ns);
        else
            history_check_set_apart(h, image, slot->asked_ns);
        history_check_advance(h, image, slot->asked_ns);
    }
    wanted_end(h, slot);
    return verdict == HISTORY_CHANGED;
}

void check_mapped(History *h, Entry *e, const PdMmap *mmap) {
    ProcessImage *image = e->image;
    ImageCheck *check;
    uint64_t *at_ns, *since_ns;

    if (h->identify != HISTORY_ASKS || image->found_id_size == 0 || image->is_apart ||
        image_is_data(image) || e->time <= image->sure_ns)
        return;
    check = history_check_of(h, image);
    if (!check) {
        /* No check will show which content was mapped. */
        h->dropped++;
        e->image = images_put(&h->strings, image);
        return;
    }
    /* The last process that mapped it is the most likely to live when it is looked at. */
    check->pid = mmap->pid;
    check->start = mmap->start;
    check->end = mmap->start + mmap->length;
    at_ns = image->is_running ? &check->later_ns : &check->first_ns;
    since_ns = image->is_running ? &check->later_since_ns : &check->since_ns;
    if (*at_ns == 0)
        *since_ns = h->sweep_ns;
    *at_ns = *at_ns == 0 ? e->time : MIN(*at_ns, e->time);
    history_check_ask(h, check);
}

static uint64_t history_check_since(const ImageCheck *check) {
    return check->first_ns ? check->since_ns : check->later_since_ns;
}

void checks_settle(History *h, uint64_t start_ns) {
    ImageCheck *next;

    for (ImageCheck *check = LIST_FIRST(&h->checks); check; check = next) {
        uint64_t until_ns = check->first_ns && check->later_ns ? check->later_ns - 1 : h->sweep_ns;

        next = LIST_NEXT(check, in_checks);
        if (history_check_since(check) + CHECK_WAIT_NS > start_ns) {
            /* There was no room for the request. */
            history_check_ask(h, check);
            continue;
        }
        history_check_set_apart(h, check->image, until_ns);
        if (check->first_ns == 0)
            history_check_free(h, check);
        else
            history_check_advance(h, check->image, until_ns);
    }
}

void checks_corrected(History *h) {
    h->correct_ns = h->correct_since_ns = UINT64_MAX;
}

uint64_t checks_floor(const History *h) {
    uint64_t first_ns = h->correct_ns;
    ImageCheck *check;

    LIST_FOREACH(check, &h->checks, in_checks)
        first_ns = MIN(first_ns, check->first_ns ?: check->later_ns);
    return first_ns == UINT64_MAX ? first_ns : first_ns - 1;
}

uint64_t checks_since(const History *h) {
    uint64_t since_ns = h->correct_since_ns;
    ImageCheck *check;

    LIST_FOREACH(check, &h->checks, in_checks)
        since_ns = MIN(since_ns, history_check_since(check));
    return since_ns;
}

uint64_t checks_until(const History *h) {
    uint64_t until_ns = 0;
    ImageCheck *check;

    LIST_FOREACH(check, &h->checks, in_checks)
        until_ns = MAX(until_ns, (check->later_since_ns ?: check->since_ns) + CHECK_WAIT_NS);
    return until_ns;
}

bool checks_wait(const History *h, EmissionSet slot) {
    ImageCheck *check;

    LIST_FOREACH(check, &h->checks, in_checks)
        if (check->shown & slot)
            return true;
    return false;
}

void checks_let_go(History *h, EmissionSet slot) {
    ImageCheck *check;

    LIST_FOREACH(check, &h->checks, in_checks)
        check->shown &= ~slot;
}

void checks_done(History *h) {
    while (!LIST_EMPTY(&h->checks))
        history_check_free(h, LIST_FIRST(&h->checks));
}
