/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "interval/pod-names.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "util/array.h"

/*
 * The kubelet has a folder /var/log/pods/NAMESPACE_POD_UID for each pod and a link
 * /var/log/containers/POD_NAMESPACE_CONTAINER-ID.log for each container. Only these names are read.
 * A pod that is gone keeps its names while there is room, because its samples come seconds later.
 * Other programs may write into these folders, so the names are not trusted.
 */

enum { ID_DIGITS = 64, UUID_DIGITS = 32, UUID_LENGTH = 36 };

typedef struct PodEntry {
    char *key; /* the uid of a pod, or the id of a container; the other texts are parts of it */
    char *namespace, *pod, *container;
    bool is_new;
} PodEntry;

struct PodNames {
    char *pods, *containers; /* paths of the folders */
    PodEntry *entries;       /* sorted by key */
    size_t n;
    uint64_t looked_ns; /* 0: never */
};

static void pod_entries_free(PodEntry *entries, size_t n) {
    for (size_t i = 0; i < n; i++)
        free(entries[i].key);
    free(entries);
}

PodNames *pod_names_free(PodNames *names) {
    if (!names)
        return NULL;
    pod_entries_free(names->entries, names->n);
    free(names->pods);
    free(names->containers);
    free(names);
    return NULL;
}

int pod_names_new(const char *root, PodNames **ret) {
    _cleanup_(pod_names_freep) PodNames *names = calloc(1, sizeof(*names));

    if (!names)
        return -ENOMEM;
    if (asprintf(&names->pods, "%s/var/log/pods", root) < 0)
        names->pods = NULL;
    if (asprintf(&names->containers, "%s/var/log/containers", root) < 0)
        names->containers = NULL;
    if (!names->pods || !names->containers)
        return -ENOMEM;
    *ret = TAKE_PTR(names);
    return 0;
}

/* Splits "A_B_C" in place; false: it has not exactly three parts that are not empty. */
static bool pod_names_split(char *text, char *parts[3]) {
    for (size_t i = 0; i < 3; i++) {
        parts[i] = strsep(&text, "_");
        if (!parts[i] || !*parts[i])
            return false;
    }
    return !text;
}

static bool pod_names_is_hex(const char *text, size_t n) {
    return strspn(text, "0123456789abcdef") == n && text[n] == '\0';
}

static bool pod_names_is_uid(const char *text) {
    return pod_names_is_hex(text, UUID_DIGITS) ||
           (strlen(text) == UUID_LENGTH && strspn(text, "0123456789abcdef-") == UUID_LENGTH);
}

/* Takes over nothing: the entry has one copy of all four texts. */
static int pod_names_put(PodNames *names, const char *key, const char *namespace, const char *pod,
                         const char *container) {
    const char *const texts[] = {key, namespace, pod, container};
    size_t sizes[ARRAY_SIZE(texts)], total = 0;
    PodEntry *entry;
    char *copy;

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        total += sizes[i] = strlen(texts[i]) + 1;
    copy = malloc(total);
    entry = copy ? array_grow(&names->entries, &names->n) : NULL;
    if (!entry) {
        free(copy);
        return -ENOMEM;
    }
    *entry = (PodEntry){.key = copy, .is_new = true};
    entry->namespace = entry->key + sizes[0];
    entry->pod = entry->namespace + sizes[1];
    entry->container = entry->pod + sizes[2];
    memcpy(entry->key, texts[0], sizes[0]);
    memcpy(entry->namespace, texts[1], sizes[1]);
    memcpy(entry->pod, texts[2], sizes[2]);
    memcpy(entry->container, texts[3], sizes[3]);
    return 0;
}

/* NAMESPACE_POD_UID */
static int pod_names_take_pod(PodNames *names, char *name) {
    char *parts[3];

    if (!pod_names_split(name, parts) || !pod_names_is_uid(parts[2]))
        return 0;
    return pod_names_put(names, parts[2], parts[0], parts[1], "");
}

/* POD_NAMESPACE_CONTAINER-ID.log */
static int pod_names_take_container(PodNames *names, char *name) {
    char *parts[3], *dot = strrchr(name, '.'), *dash = strrchr(name, '-');

    if (!dot || !dash || strcmp(dot, ".log") != 0)
        return 0;
    *dot = *dash = '\0';
    if (!pod_names_is_hex(dash + 1, ID_DIGITS) || !pod_names_split(name, parts))
        return 0;
    return pod_names_put(names, dash + 1, parts[1], parts[0], parts[2]);
}

/* Adds what a folder has; one that is not here, or that may not be read, has nothing. */
static int pod_names_read(PodNames *names, const char *path, size_t limit,
                          int (*take)(PodNames *names, char *name)) {
    _cleanup_closedir_ DIR *folder = opendir(path);
    size_t entries = 0, first = names->n;
    const struct dirent *entry;
    int r = 0;

    while (r == 0 && folder && entries++ < POD_NAMES_ENTRIES_MAX && names->n - first < limit &&
           (entry = readdir(folder))) {
        char name[sizeof(entry->d_name)];

        snprintf(name, sizeof(name), "%s", entry->d_name);
        r = take(names, name);
    }
    return r;
}

/* By key, and of equal keys the new one first. */
static int pod_names_compare(const void *a, const void *b) {
    const PodEntry *x = a, *y = b;
    int order = strcmp(x->key, y->key);

    return order != 0 ? order : (int)y->is_new - (int)x->is_new;
}

/* Sorts, and drops entries whose key came before, and old ones where there are too many. */
static void pod_names_tidy(PodNames *names) {
    size_t n = 0, excess = names->n > POD_NAMES_MAX ? names->n - POD_NAMES_MAX : 0;

    if (names->n > 0)
        qsort(names->entries, names->n, sizeof(*names->entries), pod_names_compare);
    for (size_t i = 0; i < names->n; i++) {
        PodEntry *entry = &names->entries[i];
        bool is_double = n > 0 && strcmp(names->entries[n - 1].key, entry->key) == 0;

        if (is_double || (!entry->is_new && excess > 0)) {
            excess -= excess > 0;
            free(entry->key);
        } else {
            names->entries[n++] = *entry;
        }
    }
    names->n = n;
    for (size_t i = 0; i < n; i++)
        names->entries[i].is_new = false;
}

static int pod_names_look(PodNames *names) {
    int r = pod_names_read(names, names->containers, POD_NAMES_MAX / 2, pod_names_take_container);

    if (r == 0)
        r = pod_names_read(names, names->pods, POD_NAMES_MAX / 2, pod_names_take_pod);
    pod_names_tidy(names);
    return r;
}

static int pod_names_compare_key(const void *key, const void *entry) {
    return strcmp(key, ((const PodEntry *)entry)->key);
}

static const PodEntry *pod_names_find(const PodNames *names, const char *key) {
    return !*key || names->n == 0 ? NULL
                                  : bsearch(key, names->entries, names->n, sizeof(*names->entries),
                                            pod_names_compare_key);
}

/* The container says most; the pod is known before its containers run. */
static const PodEntry *pod_names_of(PodNames *names, const CgroupOwner *owner, uint64_t now_ns,
                                    int *ret_error) {
    const PodEntry *found = pod_names_find(names, owner->container);

    if (!found && owner->pod[0] &&
        (names->looked_ns == 0 || now_ns - names->looked_ns >= POD_NAMES_PAUSE_NS)) {
        names->looked_ns = now_ns;
        *ret_error = pod_names_look(names);
        found = pod_names_find(names, owner->container);
    }
    return found ?: pod_names_find(names, owner->pod);
}

static int pod_names_copy(Interval *interval, uint32_t cgroup, const PodEntry *entry) {
    IntervalPod *pod = array_grow(&interval->pods, &interval->n_pods);

    if (!pod)
        return -ENOMEM;
    pod->cgroup = cgroup;
    pod->namespace = strdup(entry->namespace);
    pod->pod = strdup(entry->pod);
    pod->container = strdup(entry->container);
    return pod->namespace && pod->pod && pod->container ? 0 : -ENOMEM;
}

int pod_names_add(PodNames *names, uint64_t now_ns, Interval *interval) {
    const Profile *profile = interval->profile;
    uint32_t n = text_set_count(profile->texts);
    _cleanup_free_ bool *is_group = calloc((size_t)n + 1, sizeof(*is_group));
    int r = 0;

    if (!is_group)
        return -ENOMEM;
    for (size_t i = 0; i < profile->n_labels; i++)
        if (profile->labels[i].values[PROFILE_CGROUP] < n)
            is_group[profile->labels[i].values[PROFILE_CGROUP]] = true;
    for (uint32_t i = 0; i < n && r == 0; i++) {
        const PodEntry *entry;
        CgroupOwner owner;

        if (!is_group[i])
            continue;
        cgroup_owner_find(text_set_get(profile->texts, i), &owner);
        entry = pod_names_of(names, &owner, now_ns, &r);
        if (r == 0 && entry)
            r = pod_names_copy(interval, i, entry);
    }
    return r;
}
