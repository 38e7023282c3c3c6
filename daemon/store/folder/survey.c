/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "store/disk/dirfd.h"
#include "store/disk/disk.h"
#include "store/folder/store-private.h"
#include "util/array.h"
#include "util/log.h"

/*
 * Lists what is in the store, at start and again now and then: names and sizes, and the manifests
 * of the newest segments only, which show how fast the store fills. Files that are not ours are
 * logged once and left alone.
 */

enum { KNOW_NEWEST = 4 };

/* A listing that will be merged into a folder. */
typedef struct Survey {
    const Store *store;
    Folder found; /* only its entries are used */
    SegmentName *manifests;
    size_t n_manifests;
    unsigned strange;
    char strange_name[64];
} Survey;

static void survey_done(Survey *survey) {
    free(survey->found.entries);
    free(survey->manifests);
}

static void survey_note_strange(Survey *survey, const char *name) {
    if (survey->strange++ == 0)
        snprintf(survey->strange_name, sizeof(survey->strange_name), "%.60s", name);
}

static int survey_take_segment(Survey *survey, int fd, const char *text, const SegmentName *name) {
    Entry entry = {.name = *name};
    int r = dirfd_measure(fd, text, &entry.bytes, &entry.directory);

    if (r == -ENOENT)
        return 0;
    if (r < 0) {
        survey_note_strange(survey, text);
        return 0;
    }
    entry.unsealed = name->state == SEGMENT_CLOSED &&
                     seal_is_missing_segment(&survey->store->seal, fd, name, entry.directory);
    return folder_insert(&survey->found, &entry) ? 0 : -ENOMEM;
}

static int survey_take_name(Survey *survey, int fd, const char *text, bool first) {
    SegmentName name, *kept;
    NameKind kind;

    if (strcmp(text, ".") == 0 || strcmp(text, "..") == 0)
        return 0;
    if (segment_name_parse(text, &kind, &name) < 0) {
        survey_note_strange(survey, text);
        return 0;
    }
    if (kind == NAME_SEGMENT)
        return survey_take_segment(survey, fd, text, &name);
    /* A daemon was killed while it wrote this file. */
    if (kind == NAME_SCRATCH && first)
        (void)unlinkat(fd, text, 0);
    if (kind != NAME_MANIFEST && kind != NAME_TRACING)
        return 0;
    kept = array_grow(&survey->manifests, &survey->n_manifests);
    if (!kept)
        return -ENOMEM;
    *kept = name;
    return 0;
}

/* Files next to a segment count with it; without a segment they are deleted. */
static void survey_match_manifests(Survey *survey, int fd, bool first) {
    static const char *const suffixes[] = {".json", ".tracing"};

    for (size_t i = 0; i < survey->n_manifests; i++) {
        const SegmentName *name = &survey->manifests[i];
        char text[SEGMENT_NAME_MAX];
        bool wanted = false, directory;
        uint64_t bytes;

        for (size_t k = 0; k < survey->found.n_entries; k++) {
            Entry *entry = &survey->found.entries[k];

            if (entry->name.number != name->number || entry->directory)
                continue;
            wanted = true;
            segment_name_beside(name, ".json", text);
            if (dirfd_measure(fd, text, &bytes, &directory) == 0) {
                entry->bytes += bytes;
                survey->found.bytes += bytes;
            }
            break;
        }
        for (size_t k = 0; first && !wanted && k < ARRAY_SIZE(suffixes); k++) {
            segment_name_beside(name, suffixes[k], text);
            (void)unlinkat(fd, text, 0);
        }
    }
}

static int survey_list(Survey *survey, int folder, bool first) {
    int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    _cleanup_closedir_ DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    int r = 0;

    if (!dir)
        return -errno;
    for (struct dirent *e; r == 0 && (e = readdir(dir));)
        r = survey_take_name(survey, fd, e->d_name, first);
    if (r == 0)
        survey_match_manifests(survey, fd, first);
    return r;
}

/* Keeps what is known about an entry; the segment that our session writes is not an entry. */
static void survey_merge(Folder *folder, Survey *survey) {
    Folder *found = &survey->found;

    for (size_t i = 0; i < found->n_entries;) {
        Entry *entry = &found->entries[i];
        const Entry *old = folder_find(folder, &entry->name);

        if (!old && entry->name.state == SEGMENT_OPEN && folder->claimed && folder->recovered) {
            folder_remove(found, entry);
            continue;
        }
        if (old && old->is_known) {
            uint64_t bytes = entry->bytes;
            bool unsealed = entry->unsealed;

            *entry = *old;
            entry->bytes = bytes;
            entry->stuck = false;
            entry->unsealed = unsealed;
        }
        i++;
    }
    free(folder->entries);
    folder->entries = TAKE_PTR(found->entries);
    folder->n_entries = found->n_entries;
    folder->n_allocated = found->n_allocated;
    folder->bytes = found->bytes;
    if (folder->n_entries > 0)
        folder->next_number =
            MAX(folder->next_number, folder->entries[folder->n_entries - 1].name.number + 1);
}

int folder_survey(Store *store, Folder *folder) {
    _cleanup_(survey_done) Survey survey = {.store = store};
    bool first = folder->surveyed_ns == 0;
    char more[32] = "";
    uint64_t next = sequence_read(folder->fd);
    int r = survey_list(&survey, folder->fd, first);

    disk_touch(__func__);
    if (r < 0)
        return r;
    pthread_mutex_lock(&store->mutex);
    survey_merge(folder, &survey);
    folder->next_number = MAX(folder->next_number, next);
    folder->surveyed_ns = store->now().boot_ns;
    pthread_mutex_unlock(&store->mutex);
    if (survey.strange > 1)
        snprintf(more, sizeof(more), " and %u more", survey.strange - 1);
    if (first && survey.strange > 0)
        log_notice("Ignoring '%s'%s in '%s/sessions/%s', which %s", survey.strange_name, more,
                   store->path, folder->name,
                   survey.strange > 1 ? "are not segments" : "is not a segment");
    return 0;
}

static void survey_fill_coverage(Entry *entry, const Manifest *manifest) {
    PdCoverage copy;

    entry->covered = manifest->covered && pd_coverage_copy(&manifest->coverage, &copy) == 0;
    if (!entry->covered)
        return;
    pd_coverage_clip(&copy);
    pd_coverage_thin(&copy, ENTRY_GAPS_MAX);
    entry->covered_from_ns = copy.from_ns;
    entry->covered_to_ns = copy.to_ns;
    entry->after = manifest->after;
    entry->n_gaps = copy.n_gaps;
    if (copy.n_gaps > 0)
        memcpy(entry->gaps, copy.gaps, copy.n_gaps * sizeof(*copy.gaps));
    pd_coverage_done(&copy);
}

void entry_fill(const Store *store, Entry *entry, const Manifest *manifest) {
    const ClockAnchor *first, *last;

    entry->is_known = true;
    entry->samples = manifest->samples;
    entry->lost = manifest->lost;
    entry->stacks = manifest->stacks;
    entry->raw_bytes = manifest->raw_bytes;
    entry->completeness = manifest->completeness;
    entry->sensitive = manifest->sensitive;
    entry->first_ns = manifest->first_ns;
    entry->last_ns = manifest->last_ns;
    entry->first_real_ns = manifest->samples ? manifest_real_ns(manifest, manifest->first_ns) : 0;
    entry->last_real_ns = manifest->samples ? manifest_real_ns(manifest, manifest->last_ns) : 0;
    snprintf(entry->boot, sizeof(entry->boot), "%.*s", STORE_BOOT_SIZE - 1, manifest->boot);
    entry->this_boot = store->boot[0] && strcmp(manifest->boot, store->boot) == 0;
    survey_fill_coverage(entry, manifest);
    entry->slept_ns = UINT64_MAX;
    if (manifest->n_anchors == 0)
        return;
    first = &manifest->anchors[0];
    entry->real_shift_ns = first->real_ns - first->monotonic_ns;
    entry->slept_ns = clock_anchor_slept_ns(first);
    last = &manifest->anchors[manifest->n_anchors - 1];
    entry->end_real_ns = last->real_ns;
    entry->end_boot_ns = last->boot_ns;
    entry->timed = manifest->synchronised;
    if (last->monotonic_ns > first->monotonic_ns)
        entry->duration_ns = last->monotonic_ns - first->monotonic_ns;
}

bool folder_know(Store *store, Folder *folder, Entry *entry) {
    _cleanup_(manifest_freep) Manifest *manifest = NULL;
    _cleanup_close_ int fd = -1;
    Entry *found;
    int r;

    if (entry->is_known)
        return true;
    disk_touch(__func__);
    fd = store_folder_fd(store, folder);
    r = fd < 0 ? fd : manifest_read(fd, &entry->name, entry->directory, folder->name, &manifest);
    pthread_mutex_lock(&store->mutex);
    found = folder_find(folder, &entry->name);
    if (found && r == 0)
        entry_fill(store, found, manifest);
    if (found) {
        found->is_known = true;
        found->unreadable = r == -ENOENT || r == -EBADMSG;
        *entry = *found;
    }
    pthread_mutex_unlock(&store->mutex);
    return found != NULL;
}

int store_folder_new(Store *store, const char *name, Folder **ret) {
    Folder *folder = calloc(1, sizeof(*folder));
    int r;

    disk_touch(__func__);
    if (!folder)
        return -ENOMEM;
    snprintf(folder->name, sizeof(folder->name), "%s", name);
    folder->next_number = 1;
    r = dirfd_open_folder(store->sessions, name, &folder->fd);
    if (r == 0)
        folder->runtime = faccessat(folder->fd, RUNTIME_FILE, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
    if (r == 0)
        r = folder_survey(store, folder);
    if (r < 0) {
        folder_free(folder);
        return r;
    }
    pthread_mutex_lock(&store->mutex);
    folder->next = store->folders;
    store->folders = folder;
    pthread_mutex_unlock(&store->mutex);
    *ret = folder;
    return 0;
}

static bool survey_has_files(int folder) {
    int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    _cleanup_closedir_ DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    bool found = !dir;

    for (struct dirent *e; !found && (e = readdir(dir));)
        found = strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
                strcmp(e->d_name, SEQUENCE_FILE) != 0 && strcmp(e->d_name, RUNTIME_FILE) != 0;
    return found;
}

/* Removes the folder of a session that 'profctl start' began and whose segments are all deleted, so
 * that those of a thousand names do not stay for ever. One that holds anything else stays. */
static bool survey_drop(Store *store, const char *name) {
    _cleanup_close_ int fd = -1;

    if (dirfd_open_folder(store->sessions, name, &fd) < 0 || survey_has_files(fd) ||
        unlinkat(fd, RUNTIME_FILE, 0) < 0)
        return false;
    (void)unlinkat(fd, SEQUENCE_FILE, 0);
    return unlinkat(store->sessions, name, AT_REMOVEDIR) == 0;
}

static int survey_session(Store *store, const char *name) {
    Folder *folder;
    size_t n;
    int r;

    if (!config_name_is_valid(name))
        return -EBADMSG;
    if (survey_drop(store, name))
        return 0;
    r = store_folder_new(store, name, &folder);
    if (r < 0)
        return r;
    n = folder->n_entries;
    for (size_t i = n > KNOW_NEWEST ? n - KNOW_NEWEST : 0; i < n; i++) {
        Entry entry = folder->entries[i];

        (void)folder_know(store, folder, &entry);
    }
    /* Read the oldest manifest too: it shows how far back the session reaches. */
    if (n > KNOW_NEWEST) {
        Entry entry = folder->entries[0];

        (void)folder_know(store, folder, &entry);
    }
    return 0;
}

int store_survey(Store *store) {
    int fd = openat(store->sessions, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    _cleanup_closedir_ DIR *dir = fd < 0 ? NULL : fdopendir(fd);

    disk_touch(__func__);
    if (!dir)
        return -errno;
    for (struct dirent *e; (e = readdir(dir));) {
        int r = e->d_name[0] == '.' ? 0 : survey_session(store, e->d_name);

        if (r == -ENOMEM)
            return r;
        if (r < 0)
            log_notice("Ignoring '%.60s' in '%s/sessions', which is not the folder of a session",
                       e->d_name, store->path);
    }
    return 0;
}
