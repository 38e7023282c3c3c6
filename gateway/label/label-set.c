/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "label/label-set.h"

#include <errno.h>
#include <string.h>

/*
 * A sorted array of names and values. It is small and bounded, because engines limit the labels of
 * a series, so that a search from the start is enough.
 */

static void label_free(Label *label) {
    free(label->name);
    free(label->value);
    *label = (Label){};
}

void label_set_done(LabelSet *set) {
    for (size_t i = 0; i < set->n; i++)
        label_free(&set->list[i]);
    set->n = 0;
}

bool label_is_name(const char *name) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    size_t n = strlen(name);

    return n > 0 && n <= LABEL_NAME_MAX && strspn(name, letters) == n &&
           !(*name >= '0' && *name <= '9');
}

/* The position of the name, or where it belongs. */
static size_t label_set_position(const LabelSet *set, const char *name, bool *ret_found) {
    size_t i = 0;
    int order = 1;

    while (i < set->n && (order = strcmp(set->list[i].name, name)) < 0)
        i++;
    *ret_found = i < set->n && order == 0;
    return i;
}

const char *label_set_get(const LabelSet *set, const char *name) {
    bool found;
    size_t i = label_set_position(set, name, &found);

    return found ? set->list[i].value : NULL;
}

void label_set_remove(LabelSet *set, const char *name) {
    bool found;
    size_t i = label_set_position(set, name, &found);

    if (!found || strcmp(name, LABEL_HOST) == 0)
        return;
    label_free(&set->list[i]);
    set->n--;
    memmove(&set->list[i], &set->list[i + 1], (set->n - i) * sizeof(Label));
}

int label_set_put(LabelSet *set, const char *name, const char *value) {
    _cleanup_free_ char *own_name = NULL, *own_value = NULL;
    bool found;
    size_t i = label_set_position(set, name, &found);

    if (!label_is_name(name))
        return -EINVAL;
    if (strlen(value) > LABEL_VALUE_MAX)
        return -E2BIG;
    if (!*value) {
        label_set_remove(set, name);
        return 0;
    }
    if (!found && set->n == LABELS_MAX)
        return -ENOSPC;
    own_name = strdup(name);
    own_value = strdup(value);
    if (!own_name || !own_value)
        return -ENOMEM;
    if (found) {
        label_free(&set->list[i]);
    } else {
        memmove(&set->list[i + 1], &set->list[i], (set->n - i) * sizeof(Label));
        set->n++;
    }
    set->list[i] = (Label){.name = TAKE_PTR(own_name), .value = TAKE_PTR(own_value)};
    return 0;
}
