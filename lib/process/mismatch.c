/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "process/mismatch.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "util/array.h"
#include "util/cgroup-path.h"
#include "util/hash.h"
#include "util/text.h"

/*
 * As long as no sample has passed all filters, this notes which filters any sample has passed, and
 * the names in the recording that are similar to the wanted ones. Groups are suggested only if a
 * sample is in them, because recordings also hold paths of other groups. All of it is bounded.
 */

enum { GROUPS_MAX = 4096, SHOWN_MAX = 4 };

void mismatch_done(Mismatch *mismatch) {
    for (size_t i = 0; i < mismatch->n_groups; i++)
        free(mismatch->groups[i].path);
    free(mismatch->groups);
    *mismatch = (Mismatch){};
}

static MismatchGroup *mismatch_find_group(const Mismatch *mismatch, uint64_t id) {
    for (size_t i = 0; i < mismatch->n_groups; i++)
        if (mismatch->groups[i].id == id)
            return &mismatch->groups[i];
    return NULL;
}

int mismatch_add_group(Mismatch *mismatch, const PdCgroup *cgroup) {
    MismatchGroup *group = mismatch_find_group(mismatch, cgroup->id);
    char *path;

    if (!group && mismatch->n_groups == GROUPS_MAX)
        return 0;
    path = strndup((const char *)cgroup->path.data, cgroup->path.size);
    if (path && !group)
        group = array_grow(&mismatch->groups, &mismatch->n_groups);
    if (!path || !group) {
        free(path);
        return -ENOMEM;
    }
    free(group->path);
    *group = (MismatchGroup){.id = cgroup->id, .path = path};
    return 0;
}

static void mismatch_offer_group(Mismatch *mismatch, const Selection *filter, uint64_t id) {
    MismatchGroup *group = mismatch_find_group(mismatch, id);
    Bytes path;

    if (!group || group->offered)
        return;
    group->offered = true;
    path = (Bytes){.data = (const uint8_t *)group->path, .size = strlen(group->path)};
    for (size_t i = 0; i < filter->n_cgroups; i++)
        cgroup_path_offer(&mismatch->near_groups, path, filter->cgroups[i], false);
    for (size_t i = 0; i < filter->n_units; i++)
        cgroup_path_offer(&mismatch->near_groups, path, filter->units[i], true);
}

static void mismatch_offer_comm(Mismatch *mismatch, const Selection *filter, Bytes comm) {
    char *seen = mismatch->comms[hash_bytes(0, comm) % MISMATCH_COMMS],
         name[MISMATCH_COMM_MAX] = "";

    if (comm.size > 0)
        memcpy(name, comm.data, MIN(comm.size, sizeof(name) - 1));
    if (strcmp(seen, name) == 0)
        return;
    memcpy(seen, name, sizeof(name));
    for (size_t i = 0; i < filter->n_comms; i++)
        near_offer(&mismatch->near_comms, name, near_distance(name, filter->comms[i]));
}

void mismatch_add_sample(Mismatch *mismatch, const Selection *filter, unsigned passed, Bytes comm,
                         uint64_t cgroup) {
    mismatch->passed |= passed;
    if (selection_kinds(filter) & ~passed & SELECTION_GROUP)
        mismatch_offer_group(mismatch, filter, cgroup);
    if (selection_kinds(filter) & ~passed & SELECTION_COMM)
        mismatch_offer_comm(mismatch, filter, comm);
}

static void mismatch_join(Buffer *out, const char *word) {
    if (out->size > 0)
        text_printf(out, " %s ", word);
}

/* A name may be followed by its other form, literal or escaped, which prints the same. */
static bool mismatch_is_other_form(const char *before, const char *word) {
    _cleanup_free_ char *text = strdup(before);

    if (text)
        text_unescape(before, text);
    return text && strcmp(before, word) != 0 && strcmp(text, word) == 0;
}

static void mismatch_put_words(Buffer *out, const char *kind, const char *const *words, size_t n) {
    bool is_unit = strcmp(kind, "unit") == 0;

    for (size_t i = 0; i < MIN(n, (size_t)SHOWN_MAX); i++) {
        Bytes word = {.data = (const uint8_t *)words[i], .size = strlen(words[i])};

        if (i > 0 && mismatch_is_other_form(words[i - 1], words[i]))
            continue;
        text_printf(out, "%s%s '", i > 0 ? " or " : "", kind);
        text_escape_again(out, word);
        text_printf(out, "%s'", is_unit ? cgroup_unit_suffix(words[i]) : "");
    }
    if (n > SHOWN_MAX)
        text_printf(out, " or %zu more", n - SHOWN_MAX);
}

static void mismatch_put_numbers(Buffer *out, const char *kind, const uint32_t *numbers, size_t n) {
    for (size_t i = 0; i < MIN(n, (size_t)SHOWN_MAX); i++)
        text_printf(out, "%s%s %" PRIu32, i > 0 ? " or " : "", kind, numbers[i]);
    if (n > SHOWN_MAX)
        text_printf(out, " or %zu more", n - SHOWN_MAX);
}

static void mismatch_put_cpus(Buffer *out, const Selection *filter) {
    uint32_t numbers[SHOWN_MAX];
    size_t n = 0;

    for (uint32_t cpu = 0; cpu < PD_COVERAGE_CPUS_MAX; cpu++)
        if (filter->cpus[cpu / 8] & 1 << cpu % 8) {
            if (n < SHOWN_MAX)
                numbers[n] = cpu;
            n++;
        }
    mismatch_put_numbers(out, "CPU", numbers, n);
}

/* All kinds of filter must match; --cgroup and --unit are one kind. */
static void mismatch_put_kinds(Buffer *out, const Selection *filter, unsigned kinds) {
    if (kinds & SELECTION_PID)
        mismatch_put_numbers(out, "process", filter->pids, filter->n_pids);
    if (kinds & SELECTION_TID) {
        mismatch_join(out, "and");
        mismatch_put_numbers(out, "thread", filter->tids, filter->n_tids);
    }
    if (kinds & SELECTION_COMM) {
        mismatch_join(out, "and");
        mismatch_put_words(out, "comm", filter->comms, filter->n_comms);
    }
    if (kinds & SELECTION_GROUP) {
        mismatch_join(out, "and");
        mismatch_put_words(out, "cgroup", filter->cgroups, filter->n_cgroups);
        if (filter->n_cgroups > 0 && filter->n_units > 0)
            mismatch_join(out, "or");
        mismatch_put_words(out, "unit", filter->units, filter->n_units);
    }
    if (kinds & SELECTION_CPU) {
        mismatch_join(out, "and");
        mismatch_put_cpus(out, filter);
    }
}

const NearNames *mismatch_describe(const Mismatch *mismatch, const Selection *filter, Buffer *out) {
    unsigned asked = selection_kinds(filter), empty = asked & ~mismatch->passed;

    mismatch_put_kinds(out, filter, empty ? empty : asked);
    return empty & SELECTION_GROUP ? &mismatch->near_groups : &mismatch->near_comms;
}
