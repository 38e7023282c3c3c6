/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "source/selection-copy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Numbers and texts are copied list by list; the lists of a Selection are const for its readers. */

static void selection_free_words(const char *const *words, size_t n) {
    for (size_t i = 0; words && i < n; i++)
        free((char *)words[i]);
    free((void *)words);
}

void selection_copy_done(Selection *copy) {
    free((void *)copy->pids);
    free((void *)copy->tids);
    selection_free_words(copy->comms, copy->n_comms);
    selection_free_words(copy->cgroups, copy->n_cgroups);
    selection_free_words(copy->units, copy->n_units);
    *copy = (Selection){};
}

static int selection_copy_numbers(const uint32_t **numbers, size_t n) {
    uint32_t *copy = n > 0 ? malloc(n * sizeof(*copy)) : NULL;

    if (copy)
        memcpy(copy, *numbers, n * sizeof(*copy));
    *numbers = copy;
    return n == 0 || copy ? 0 : -ENOMEM;
}

static int selection_copy_words(const char *const **words, size_t n) {
    char **copy = n > 0 ? calloc(n, sizeof(*copy)) : NULL;
    int r = n == 0 || copy ? 0 : -ENOMEM;

    for (size_t i = 0; copy && i < n && r == 0; i++) {
        copy[i] = strdup((*words)[i]);
        r = copy[i] ? 0 : -ENOMEM;
    }
    *words = (const char *const *)copy;
    return r;
}

int selection_copy(const Selection *from, Selection *ret) {
    Selection copy = from ? *from : (Selection){};
    /* All lists are replaced, also after a failure, so that nothing of `from` is freed. */
    int results[] = {
        selection_copy_numbers(&copy.pids, copy.n_pids),
        selection_copy_numbers(&copy.tids, copy.n_tids),
        selection_copy_words(&copy.comms, copy.n_comms),
        selection_copy_words(&copy.cgroups, copy.n_cgroups),
        selection_copy_words(&copy.units, copy.n_units),
    };

    for (size_t i = 0; i < sizeof(results) / sizeof(*results); i++)
        if (results[i] < 0) {
            selection_copy_done(&copy);
            return results[i];
        }
    *ret = copy;
    return 0;
}
