/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "perfdata/writer/writer.h"
#include "store/disk/dirfd.h"
#include "store/disk/disk.h"
#include "store/folder/store-private.h"
#include "store/segment/manifest-rebuild.h"
#include "util/clock.h"
#include "util/log.h"

/*
 * A segment that a killed daemon or a session that was given up left open is cut after its last
 * whole record, finished as usual and marked with a `~`, so that nobody takes it for a complete
 * one. What the file itself does not hold (boot, clocks, tracepoints) was written next to it when
 * it was begun. Nothing is deleted because it is damaged: what cannot be repaired is set aside.
 * What the disk does not permit is tried again, with growing pauses. All of this runs on a writer
 * thread.
 */

enum { TRACING_BYTES_MAX = 64 << 20, PATH_TEXT_MAX = 4096 };

/* Between two tries, since each reads the whole segment. */
#define RETRY_MIN_NS (4 * NS_PER_SECOND)
#define RETRY_MAX_NS (600 * NS_PER_SECOND)

typedef struct Mending {
    Store *store;
    Folder *folder;
    int fd;           /* of the session's folder */
    Entry entry;      /* as it was found on the disk */
    SegmentName name; /* the name that it will get */
    char text[SEGMENT_NAME_MAX];
    Manifest *before; /* NULL: there is no readable manifest */
    bool sensitive;
    bool foreign; /* it belongs to another user already, so it must be used as it is */
    PdRecovery did;
    PdEnvironment *environment; /* for its header; borrows everything it points to */
    PdCoverage coverage;        /* for its header, in wall-clock time */
} Mending;

static void recovery_mending_done(Mending *m) {
    closep(&m->fd);
    manifest_free(m->before);
    free(m->environment);
    pd_coverage_done(&m->coverage);
}

static int recovery_seal_file(void *userdata, const char *name, int fd) {
    const Mending *m = userdata;

    if (strncmp(name, "data", 4) == 0)
        seal_give(&m->store->seal, fd, name, m->sensitive);
    return 0;
}

static void recovery_seal(Mending *m, int fd) {
    SegmentName where = m->entry.directory ? m->entry.name : m->name;
    _cleanup_close_ int manifest = manifest_open(m->fd, &where, m->entry.directory);

    if (m->entry.directory)
        (void)dirfd_each_file(fd, recovery_seal_file, m);
    seal_give(&m->store->seal, fd, m->text, m->sensitive);
    seal_give(&m->store->seal, manifest, "a manifest", m->sensitive);
}

static bool recovery_same_boot(const Mending *m) {
    const PdEnvironment *environment = m->store->environment;

    return m->before && environment && environment->hostname &&
           strcmp(m->before->host, environment->hostname) == 0 &&
           strcmp(m->before->boot, m->store->boot) == 0;
}

/* Chooses what the header says about the host: everything if the segment is from this boot, else
 * what was noted when it began. The copy borrows its strings. */
static void recovery_describe_host(const Mending *m, Bytes tracing, PdEnvironment *ret) {
    bool here = recovery_same_boot(m) || !m->before;

    memset(ret, 0, sizeof(*ret));
    if (here && m->store->environment)
        *ret = *m->store->environment;
    if (!here) {
        ret->hostname = m->before->host;
        ret->version = m->before->recorder;
        ret->has[PD_FEATURE_HOSTNAME] = ret->has[PD_FEATURE_VERSION] = true;
        ret->clockid_resolution_ns = 1;
        ret->has[PD_FEATURE_CLOCKID] = true;
    }
    ret->has[PD_FEATURE_CLOCK_DATA] = m->before && m->before->n_anchors > 0;
    if (ret->has[PD_FEATURE_CLOCK_DATA]) {
        ret->clock_data_version = 1;
        ret->clock_data_clockid = CLOCK_MONOTONIC;
        ret->clock_data_clockid_ns = m->before->anchors[0].monotonic_ns;
        ret->clock_data_wall_ns = m->before->anchors[0].real_ns;
    }
    ret->has[PD_FEATURE_TRACING_DATA] = tracing.size > 0;
    ret->tracing_data = (uint8_t *)tracing.data;
    ret->tracing_data_size = tracing.size;
}

static void recovery_read_tracing(const Mending *m, int segment, Buffer *out) {
    char text[SEGMENT_NAME_MAX];

    segment_name_beside(&m->entry.name, ".tracing", text);
    (void)(m->entry.directory ? dirfd_read(segment, "tracing", TRACING_BYTES_MAX, out)
                              : dirfd_read(m->fd, text, TRACING_BYTES_MAX, out));
}

/* A finished file may have been sealed, and then it can only be opened for reading. */
static int recovery_open_segment(const Mending *m) {
    const int flags = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    int fd = openat(m->fd, m->text, flags | (m->entry.directory ? O_RDONLY | O_DIRECTORY : O_RDWR));

    if (fd < 0 && errno == EACCES)
        fd = openat(m->fd, m->text, flags | O_RDONLY);
    return fd < 0 ? -errno : fd;
}

/*
 * The segment covers at least the time up to its last sample. After a power loss the end of a sweep
 * may be on the disk for one CPU but not for another. Then it covers the time up to the last
 * FINISHED_ROUND, which ends a sweep, or up to the last sync, which the manifest has.
 */
static uint64_t recovery_covered_to(const Mending *m, uint64_t last_ns, uint64_t round_ns) {
    bool same_boot = strcmp(m->before->boot, m->store->boot) == 0;
    const PdCoverage *coverage = &m->before->coverage;
    uint64_t known_ns = MAX(coverage->from_ns, coverage->to_ns);

    /* A session that was given up knew more than it could save. */
    if (m->entry.covered)
        known_ns = MAX(known_ns, m->entry.covered_to_ns);
    return MAX(known_ns, same_boot ? last_ns : round_ns);
}

/* Sets the same coverage in the header that the manifest will have. */
static int recovery_describe_coverage(void *userdata, const PdRecoveredTimes *times) {
    Mending *m = userdata;
    int r;

    if (!m->before || !m->before->covered)
        return 0;
    pd_coverage_done(&m->coverage);
    m->before->coverage.to_ns = recovery_covered_to(m, times->last_ns, times->round_ns);
    r = manifest_real_coverage(m->before, &m->coverage);
    if (r < 0)
        return r == -ENODATA ? 0 : r;
    m->environment->coverage = m->coverage;
    m->environment->has[PD_FEATURE_PROFD_COVERAGE] = true;
    return 0;
}

/* The names that the events were asked for by, which a finished segment would have. */
static int recovery_name_events(void *userdata, PdEvents *events) {
    const Manifest *before = ((Mending *)userdata)->before;
    int r = 0;

    if (!before || before->n_events != pd_events_count(events))
        return 0;
    for (size_t i = 0; r == 0 && i < before->n_events; i++) {
        Bytes name = {.data = (const uint8_t *)before->events[i],
                      .size = strlen(before->events[i])};

        /* A longer one was cut. */
        if (name.size > 0 && name.size + 1 < MANIFEST_TEXT_MAX)
            r = pd_events_set_name(events, pd_events_at(events, i), name);
    }
    return r;
}

static int recovery_mend(Mending *m, int segment) {
    _cleanup_(buffer_done) Buffer tracing = {};
    PdRecoverOptions options = {.layout = m->entry.directory ? PD_LAYOUT_DIRECTORY : PD_LAYOUT_FILE,
                                .on_read = recovery_describe_coverage,
                                .on_events = recovery_name_events,
                                .userdata = m};
    int r;

    free(m->environment);
    options.environment = m->environment = calloc(1, sizeof(*m->environment));
    if (!m->environment)
        return -ENOMEM;
    recovery_read_tracing(m, segment, &tracing);
    recovery_describe_host(m, buffer_bytes(&tracing), m->environment);
    r = pd_segment_recover_with(segment, &options, &m->did);
    /* Sealed files cannot be opened for writing. */
    m->foreign = r == -EACCES && m->entry.directory;
    return r == -EALREADY || m->foreign ? 0 : r;
}

static void recovery_restore_coverage(Mending *m, Manifest *manifest) {
    manifest->covered = true;
    /* A session that was given up knew why it ended. */
    manifest->after = m->entry.covered ? m->entry.after : PD_GAP_DOWN;
    m->before->coverage.to_ns = recovery_covered_to(m, manifest->last_ns, manifest->round_ns);
    manifest->coverage = m->before->coverage;
    m->before->coverage = (PdCoverage){};
    pd_coverage_clip(&manifest->coverage);
}

/* The data overrides the manifest that was written when the segment began. */
static int recovery_write_manifest(Mending *m) {
    _cleanup_(manifest_freep) Manifest *manifest = NULL;
    SegmentName where = m->entry.directory ? m->entry.name : m->name;
    int r = manifest_rebuild(m->fd, &m->entry.name, m->folder->name, &manifest);

    if (r < 0)
        return r;
    if (m->foreign && manifest->completeness != COMPLETE)
        return -EACCES;
    manifest->completeness = RECOVERED;
    snprintf(manifest->damage, sizeof(manifest->damage), "%s", m->did.damage);
    manifest->unidentified = m->did.unidentified;
    if (m->before && m->before->covered)
        recovery_restore_coverage(m, manifest);
    if (m->before) {
        memcpy(manifest->boot, m->before->boot, sizeof(manifest->boot));
        memcpy(manifest->host, m->before->host, sizeof(manifest->host));
        memcpy(manifest->recorder, m->before->recorder, sizeof(manifest->recorder));
        free(manifest->anchors);
        manifest->anchors = TAKE_PTR(m->before->anchors);
        manifest->n_anchors = m->before->n_anchors;
        manifest->sensitive |= m->before->sensitive;
        manifest->stacks = m->before->stacks;
    }
    m->sensitive = manifest->sensitive;
    entry_fill(m->store, &m->entry, manifest);
    return manifest_write(m->fd, &where, manifest);
}

static int recovery_rename_mended(Mending *m) {
    static const char *const beside[] = {".json", ".tracing"};
    char to[SEGMENT_NAME_MAX];
    int r;

    segment_name_print(&m->name, to);
    r = dirfd_rename(m->fd, m->text, to);
    if (r < 0)
        return r;
    /* The new manifest has the new name, so delete the old files; a segment that is set aside keeps
     * its old manifest. */
    for (size_t i = 0; m->name.recovered && !m->entry.directory && i < ARRAY_SIZE(beside); i++) {
        char text[SEGMENT_NAME_MAX];

        segment_name_beside(&m->entry.name, beside[i], text);
        (void)unlinkat(m->fd, text, 0);
    }
    memcpy(m->text, to, sizeof(to));
    return fsync(m->fd) < 0 ? -errno : 0;
}

static int recovery_add_size(void *userdata, const char *name, int fd) {
    struct stat st;

    if (strncmp(name, "data", 4) == 0 && fstat(fd, &st) == 0)
        *(uint64_t *)userdata += (uint64_t)st.st_size;
    return 0;
}

/* The daemon was killed before it wrote anything, so there is nothing to keep. */
static bool recovery_is_empty(const Mending *m, int segment) {
    uint64_t bytes = 0;
    int r = m->entry.directory ? dirfd_each_file(segment, recovery_add_size, &bytes)
                               : recovery_add_size(&bytes, "data", segment);

    return r == 0 && bytes == 0;
}

static int recovery_remove_empty(Mending *m) {
    static const char *const beside[] = {".json", ".tracing"};
    int r = dirfd_remove(m->fd, m->text);

    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(beside); i++) {
        char text[SEGMENT_NAME_MAX];

        segment_name_beside(&m->entry.name, beside[i], text);
        (void)unlinkat(m->fd, text, 0);
    }
    return r;
}

static int recovery_fsync_file(void *userdata _unused_, const char *name _unused_, int fd) {
    return fsync(fd) < 0 ? -errno : 0;
}

/* The path under its current name. */
static const char *recovery_path_of(const Mending *m, char path[PATH_TEXT_MAX]) {
    (void)snprintf(path, PATH_TEXT_MAX, "%s/sessions/%s/%s", m->store->path, m->folder->name,
                   m->text);
    return path;
}

static void recovery_log_recovered(const Mending *m) {
    char path[PATH_TEXT_MAX], samples[32], cut[64] = "";

    if (m->did.cut_bytes > 0)
        snprintf(cut, sizeof(cut), ", %" PRIu64 " bytes cut off", m->did.cut_bytes);
    snprintf(samples, sizeof(samples), "%" PRIu64, m->entry.samples);
    log_struct(LOG_LEVEL_NOTICE, 0,
               LOG_FIELDS({"PROFD_EVENT", "segment-recovered"}, {"PROFD_SESSION", m->folder->name},
                          {"PROFD_SEGMENT", recovery_path_of(m, path)}, {"PROFD_SAMPLES", samples}),
               "Recovered segment '%s' of session '%s' with %s samples%s%s%s", m->text,
               m->folder->name, samples, cut,
               !m->did.damage[0] ? ""
               : cut[0]          ? " at "
                                 : ", damaged at ",
               m->did.damage);
}

static int recovery_finish(Mending *m, int segment) {
    int r;

    m->name.recovered = true;
    m->name.state = SEGMENT_CLOSED;
    r = m->entry.directory ? dirfd_each_file(segment, recovery_fsync_file, NULL)
                           : recovery_fsync_file(NULL, NULL, segment);
    if (r == 0)
        r = recovery_write_manifest(m);
    if (r == 0) {
        recovery_seal(m, segment);
        r = recovery_rename_mended(m);
    }
    if (r == 0)
        recovery_log_recovered(m);
    return r;
}

static int recovery_set_aside(Mending *m) {
    char path[PATH_TEXT_MAX];
    int r;

    m->name.state = SEGMENT_DAMAGED;
    r = recovery_rename_mended(m);
    if (r == 0)
        log_struct(LOG_LEVEL_WARNING, 0,
                   LOG_FIELDS({"PROFD_EVENT", "segment-damaged"},
                              {"PROFD_SESSION", m->folder->name},
                              {"PROFD_SEGMENT", recovery_path_of(m, path)}),
                   "Segment '%s' of session '%s' cannot be repaired and was set aside; delete it "
                   "when you do not need it",
                   m->text, m->folder->name);
    return r;
}

/* 1: recovered or set aside as m->name; 0: it no longer exists; a negative errno: it stays as it
 * is. */
static int recovery_recover(Mending *m) {
    _cleanup_close_ int segment = -1;
    int r;

    m->fd = store_folder_fd(m->store, m->folder);
    if (m->fd < 0)
        return m->fd;
    segment_name_print(&m->entry.name, m->text);
    (void)manifest_read(m->fd, &m->entry.name, m->entry.directory, m->folder->name, &m->before);
    segment = recovery_open_segment(m);
    if (segment < 0)
        return segment == -ENOENT ? 0 : segment;
    if (recovery_is_empty(m, segment))
        return recovery_remove_empty(m);
    r = recovery_mend(m, segment);
    if (r == -ENOSPC || r == -EDQUOT) {
        (void)store_vacuum(m->store);
        r = recovery_mend(m, segment);
    }
    r = r == 0 ? recovery_finish(m, segment) : r == -EBADMSG ? recovery_set_aside(m) : r;
    return r < 0 ? r : 1;
}

static void recovery_register_mended(Mending *m, int r) {
    Store *store = m->store;
    Entry entry = m->entry;
    Entry *old;

    entry.name = r > 0 ? m->name : m->entry.name;
    entry.stuck = r < 0;
    /* The main thread, which takes over, must not read it. */
    if (r < 0 && !entry.is_known && m->before)
        entry_fill(store, &entry, m->before);
    else if (r < 0 && !entry.is_known)
        entry.is_known = entry.unreadable = true;
    if (r > 0 && dirfd_measure(m->fd, m->text, &entry.bytes, &entry.directory) < 0)
        r = 0;
    pthread_mutex_lock(&store->mutex);
    old = folder_find(m->folder, &m->entry.name);
    if (old)
        folder_remove(m->folder, old);
    if (r != 0)
        (void)folder_insert(m->folder, &entry);
    pthread_mutex_unlock(&store->mutex);
}

static bool recovery_newest_open(Store *store, Folder *folder, Entry *ret) {
    bool found = false;

    pthread_mutex_lock(&store->mutex);
    for (size_t i = folder->n_entries; !found && i > 0; i--) {
        const Entry *entry = &folder->entries[i - 1];

        found = entry->name.state == SEGMENT_OPEN && !entry->stuck;
        *ret = *entry;
    }
    pthread_mutex_unlock(&store->mutex);
    return found;
}

/* Whether this is not the first try. */
static bool recovery_begin(Store *store, Folder *folder) {
    bool again;

    pthread_mutex_lock(&store->mutex);
    again = folder->retry_pause_ns > 0;
    for (size_t i = 0; i < folder->n_entries; i++)
        folder->entries[i].stuck &= folder->entries[i].name.state != SEGMENT_OPEN;
    pthread_mutex_unlock(&store->mutex);
    return again;
}

/* Call it with the mutex held. */
static void recovery_plan_next(const Store *store, Folder *folder, bool failed) {
    uint64_t pause_ns = MAX(2 * folder->retry_pause_ns, RETRY_MIN_NS);

    pause_ns = failed ? MIN(pause_ns, RETRY_MAX_NS) : 0;
    folder->retry_pause_ns = pause_ns;
    folder->retry_ns = failed ? store->now().boot_ns + pause_ns : 0;
}

void folder_recover(Store *store, Folder *folder) {
    bool failed = false, again = recovery_begin(store, folder);
    Entry entry;

    disk_touch(__func__);
    while (recovery_newest_open(store, folder, &entry)) {
        _cleanup_(recovery_mending_done) Mending m = {
            .store = store, .folder = folder, .fd = -1, .entry = entry, .name = entry.name};
        int r = recovery_recover(&m);

        failed |= r < 0;
        if (r < 0 && !again)
            log_warning(r, "Failed to recover segment '%s' of session '%s', trying again later: %m",
                        m.text, folder->name);
        recovery_register_mended(&m, r);
    }
    pthread_mutex_lock(&store->mutex);
    folder->recovered = true;
    recovery_plan_next(store, folder, failed);
    pthread_cond_broadcast(&store->recovered);
    pthread_mutex_unlock(&store->mutex);
}

/* Call it with the mutex held. */
static bool recovery_is_due(const Store *store, const Folder *folder) {
    return folder->retry_ns > 0 && store->now().boot_ns >= folder->retry_ns;
}

bool folder_recover_again(Store *store, Folder *folder) {
    bool due;

    pthread_mutex_lock(&store->mutex);
    due = recovery_is_due(store, folder);
    pthread_mutex_unlock(&store->mutex);
    if (due)
        folder_recover(store, folder);
    return due;
}

/* Call it with the mutex held. */
static bool recovery_is_stray(const Store *store, const Folder *folder) {
    if (folder->claimed || folder->stray)
        return false;
    return folder->retry_ns > 0 ? recovery_is_due(store, folder)
                                : !folder->recovered || folder->abandoned;
}

/* A session that was given up may have left what is not in the list. */
static int recovery_survey_abandoned(Store *store, Folder *folder) {
    int r;

    pthread_mutex_lock(&store->disk);
    r = folder->abandoned ? folder_survey(store, folder) : 0;
    pthread_mutex_unlock(&store->disk);
    pthread_mutex_lock(&store->mutex);
    if (r == 0)
        folder->abandoned = false;
    else
        recovery_plan_next(store, folder, true);
    pthread_mutex_unlock(&store->mutex);
    return r;
}

bool store_recover_stray(Store *store) {
    Folder *folder;

    pthread_mutex_lock(&store->mutex);
    folder = store->folders;
    while (folder && !recovery_is_stray(store, folder))
        folder = folder->next;
    if (folder)
        folder->stray = true;
    pthread_mutex_unlock(&store->mutex);
    if (!folder)
        return false;
    if (recovery_survey_abandoned(store, folder) == 0)
        folder_recover(store, folder);
    pthread_mutex_lock(&store->mutex);
    folder->stray = false;
    pthread_cond_broadcast(&store->recovered);
    pthread_mutex_unlock(&store->mutex);
    return true;
}

static bool recovery_next_without_manifest(Store *store, Folder *folder, Entry *ret) {
    bool found = false;

    pthread_mutex_lock(&store->mutex);
    for (size_t i = 0; !found && i < folder->n_entries; i++) {
        const Entry *entry = &folder->entries[i];

        found = entry->unreadable && entry->name.state == SEGMENT_CLOSED && !entry->stuck;
        *ret = *entry;
    }
    pthread_mutex_unlock(&store->mutex);
    return found;
}

bool folder_mend_manifest(Store *store, Folder *folder) {
    _cleanup_(manifest_freep) Manifest *manifest = NULL;
    _cleanup_close_ int fd = -1, made = -1;
    Entry entry, *found;
    int r;

    disk_touch(__func__);
    if (!recovery_next_without_manifest(store, folder, &entry))
        return false;
    fd = store_folder_fd(store, folder);
    r = fd < 0 ? fd : manifest_rebuild(fd, &entry.name, folder->name, &manifest);
    if (r == 0) {
        manifest->completeness = entry.name.recovered ? RECOVERED : manifest->completeness;
        r = manifest_write(fd, &entry.name, manifest);
        made = r < 0 ? -1 : manifest_open(fd, &entry.name, entry.directory);
        seal_give(&store->seal, made, "a manifest", manifest->sensitive);
    }
    pthread_mutex_lock(&store->mutex);
    found = folder_find(folder, &entry.name);
    if (found) {
        found->unreadable = false;
        if (r == 0)
            entry_fill(store, found, manifest);
    }
    pthread_mutex_unlock(&store->mutex);
    if (r < 0)
        log_warning(r, "Failed to rebuild the manifest of segment %08llu of session '%s': %m",
                    (unsigned long long)entry.name.number, folder->name);
    else
        log_notice("Rebuilt the manifest of segment %08llu of session '%s'",
                   (unsigned long long)entry.name.number, folder->name);
    return true;
}
