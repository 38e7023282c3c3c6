/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "store/disk/disk.h"
#include "store/disk/place.h"
#include "store/folder/store-private.h"
#include "util/array.h"
#include "util/log.h"

/*
 * What lies in the store, read at start and again now and then: names and sizes, no contents but
 * the manifests of the newest ones, which tell how fast the store fills. What is not ours is told
 * once and left alone.
 */

enum { TELL_NEWEST = 4 };

static void closedirp(DIR **d) {
    if (*d)
        (void)closedir(*d);
}

/* A listing on its way into a folder. */
typedef struct Survey {
    const Store *store;
    Folder found; /* entries alone */
    SegmentName *manifests;
    size_t n_manifests;
    unsigned strange;
    char strange_name[64];
} Survey;

static void survey_done(Survey *survey) {
    free(survey->found.entries);
    free(survey->manifests);
}

static void note_strange(Survey *survey, const char *name) {
    if (survey->strange++ == 0)
        snprintf(survey->strange_name, sizeof(survey->strange_name), "%.60s", name);
}

static int take_segment(Survey *survey, int fd, const char *text, const SegmentName *name) {
    Entry entry = {.name = *name};
    int r = place_measure(fd, text, &entry.bytes, &entry.directory);

    if (r == -ENOENT)
        return 0;
    if (r < 0) {
        note_strange(survey, text);
        return 0;
    }
    entry.unsealed = name->state == SEGMENT_CLOSED &&
                     store_is_unsealed_segment(survey->store, fd, name, entry.directory);
    return folder_insert(&survey->found, &entry) ? 0 : -ENOMEM;
}

static int take_name(Survey *survey, int fd, const char *text, bool first) {
    SegmentName name, *kept;
    NameKind kind;

    if (strcmp(text, ".") == 0 || strcmp(text, "..") == 0)
        return 0;
    if (segment_name_parse(text, &kind, &name) < 0) {
        note_strange(survey, text);
        return 0;
    }
    if (kind == NAME_SEGMENT)
        return take_segment(survey, fd, text, &name);
    /* A daemon that was killed while it wrote. */
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

/* What lies beside a segment counts with it, and goes when there is none. */
static void match_manifests(Survey *survey, int fd, bool first) {
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
            if (place_measure(fd, text, &bytes, &directory) == 0) {
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

static int list(Survey *survey, int folder, bool first) {
    int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    _cleanup_(closedirp) DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    int r = 0;

    if (!dir)
        return -errno;
    for (struct dirent *e; r == 0 && (e = readdir(dir));)
        r = take_name(survey, fd, e->d_name, first);
    if (r == 0)
        match_manifests(survey, fd, first);
    return r;
}

/* What was known stays known; what our own session writes is no entry. */
static void merge(Folder *folder, Survey *survey) {
    Folder *found = &survey->found;

    for (size_t i = 0; i < found->n_entries;) {
        Entry *entry = &found->entries[i];
        const Entry *old = folder_find(folder, &entry->name);

        if (!old && entry->name.state == SEGMENT_OPEN && folder->claimed && folder->recovered) {
            folder_remove(found, entry);
            continue;
        }
        if (old && old->told) {
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
    uint64_t next = sequence_read(folder->fd);
    int r = list(&survey, folder->fd, first);

    disk_touch(__func__);
    if (r < 0)
        return r;
    pthread_mutex_lock(&store->mutex);
    merge(folder, &survey);
    folder->next_number = MAX(folder->next_number, next);
    folder->surveyed_ns = store->now().boot_ns;
    pthread_mutex_unlock(&store->mutex);
    if (first && survey.strange > 0)
        log_notice("Ignoring '%s' and %u more in '%s/sessions/%s', which are no segments",
                   survey.strange_name, survey.strange - 1, store->path, folder->name);
    return 0;
}

static void tell_coverage(Entry *entry, const Manifest *manifest) {
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

void entry_tell(const Store *store, Entry *entry, const Manifest *manifest) {
    const ClockAnchor *first, *last;

    entry->told = true;
    entry->samples = manifest->samples;
    entry->lost = manifest->lost;
    entry->raw_bytes = manifest->raw_bytes;
    entry->completeness = manifest->completeness;
    entry->sensitive = manifest->sensitive;
    entry->first_ns = manifest->first_ns;
    entry->last_ns = manifest->last_ns;
    entry->first_real_ns = manifest->samples ? manifest_real_ns(manifest, manifest->first_ns) : 0;
    entry->last_real_ns = manifest->samples ? manifest_real_ns(manifest, manifest->last_ns) : 0;
    snprintf(entry->boot, sizeof(entry->boot), "%.*s", STORE_BOOT_SIZE - 1, manifest->boot);
    entry->this_boot = store->boot[0] && strcmp(manifest->boot, store->boot) == 0;
    tell_coverage(entry, manifest);
    if (manifest->n_anchors == 0)
        return;
    first = &manifest->anchors[0];
    entry->real_shift_ns = first->real_ns - first->monotonic_ns;
    last = &manifest->anchors[manifest->n_anchors - 1];
    entry->end_real_ns = last->real_ns;
    entry->end_boot_ns = last->boot_ns;
    entry->timed = manifest->synchronised;
    if (last->monotonic_ns > first->monotonic_ns)
        entry->duration_ns = last->monotonic_ns - first->monotonic_ns;
}

void folder_tell(Store *store, Folder *folder, const Entry *of) {
    _cleanup_(manifest_freep) Manifest *manifest = NULL;
    _cleanup_close_ int fd = store_folder_fd(store, folder);
    int r = fd < 0 ? fd : manifest_read(fd, &of->name, of->directory, folder->name, &manifest);
    Entry *entry;

    disk_touch(__func__);
    pthread_mutex_lock(&store->mutex);
    entry = folder_find(folder, &of->name);
    if (entry && r == 0)
        entry_tell(store, entry, manifest);
    if (entry) {
        entry->told = true;
        entry->unreadable = r == -ENOENT || r == -EBADMSG;
    }
    pthread_mutex_unlock(&store->mutex);
}

static int survey_folder(Store *store, const char *name) {
    Folder *folder;
    size_t n;
    int r;

    if (!config_name_is_valid(name))
        return -EBADMSG;
    r = store_folder_new(store, name, &folder);
    if (r < 0)
        return r;
    n = folder->n_entries;
    for (size_t i = n > TELL_NEWEST ? n - TELL_NEWEST : 0; i < n; i++) {
        Entry entry = folder->entries[i];

        folder_tell(store, folder, &entry);
    }
    /* And the oldest one, which tells how far back it reaches. */
    if (n > TELL_NEWEST) {
        Entry entry = folder->entries[0];

        folder_tell(store, folder, &entry);
    }
    return 0;
}

int store_survey(Store *store) {
    int fd = openat(store->sessions, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    _cleanup_(closedirp) DIR *dir = fd < 0 ? NULL : fdopendir(fd);

    disk_touch(__func__);
    if (!dir)
        return -errno;
    for (struct dirent *e; (e = readdir(dir));) {
        int r = e->d_name[0] == '.' ? 0 : survey_folder(store, e->d_name);

        if (r == -ENOMEM)
            return r;
        if (r < 0)
            log_notice("Ignoring '%.60s' in '%s/sessions', which is no session's folder", e->d_name,
                       store->path);
    }
    return 0;
}
