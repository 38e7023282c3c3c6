/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "store/disk/dirfd.h"
#include "store/disk/disk.h"
#include "store/snapshot/snapshot-private.h"

/*
 * Makes one snapshot. It is built under a hidden name, synced, sealed, described, and renamed last;
 * if anything fails before that, all of it is deleted. The job does not touch a session, except for
 * the view that its writer publishes.
 */

enum { NAMES_MAX = 1000 };

static void snapshot_job_wake(Snapshot *job) {
    uint64_t one = 1;

    (void)!write(job->engine->event, &one, sizeof(one));
}

static int snapshot_job_on_bytes(void *userdata, uint64_t bytes) {
    Snapshot *job = userdata;
    SnapshotEngine *engine = job->engine;
    int r;

    pthread_mutex_lock(&engine->mutex);
    job->bytes = bytes;
    r = snapshot_budget(engine, job, bytes, &job->failure);
    job->failed = r < 0;
    snapshot_list_account(engine);
    pthread_mutex_unlock(&engine->mutex);
    return r;
}

static void snapshot_job_on_progress(void *userdata) {
    Snapshot *job = userdata;

    if (!atomic_exchange(&job->progressed, true))
        snapshot_job_wake(job);
}

static void snapshot_job_scratch_name(const Snapshot *job, char ret[SNAPSHOT_FILE_MAX]) {
    if (job->kept->info.transient)
        snapshot_data_name(&job->kept->info, ret);
    else
        snprintf(ret, SNAPSHOT_FILE_MAX, ".%.*s.part", SNAPSHOT_NAME_MAX, job->kept->info.name);
}

static int snapshot_job_create(const Snapshot *job, const char *scratch) {
    int fd;

    if (job->kept->info.layout == LAYOUT_FILE) {
        fd = openat(job->engine->folder, scratch,
                    O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, DIRFD_FILE_MODE);
        return fd < 0 ? -errno : fd;
    }
    if (mkdirat(job->engine->folder, scratch, DIRFD_FOLDER_MODE) < 0)
        return -errno;
    fd = openat(job->engine->folder, scratch, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

static int snapshot_job_build(Snapshot *job, int fd) {
    const SnapshotInfo *info = &job->kept->info;
    const Build job_build = {
        .store = job->engine->store,
        .query = job->query,
        .filter = job->filter,
        .privileged = job->kept->privileged,
        .output = {.layout = info->layout,
                   .zstd_level = job->zstd_level,
                   .keep_frames = job->keep_frames,
                   .n_files = MIN(job->engine->store->n_cpus, (unsigned)SNAPSHOT_WRITER_FILES_MAX)},
        .progress = &job->progress,
        .on_bytes = snapshot_job_on_bytes,
        .on_progress = snapshot_job_on_progress,
        .userdata = job,
    };
    SnapshotInfo *to = &job->kept->info;
    SnapshotFailure why;
    BuildResult result;
    int r = snapshot_build(&job_build, fd, &result, &why);

    if (r < 0 && !job->failed) {
        job->failed = true;
        job->failure = why;
    }
    if (r < 0)
        return r;
    to->samples = result.samples;
    to->lost = result.lost;
    to->unidentified = result.unidentified;
    to->first_ns = result.first_ns;
    to->last_ns = result.last_ns;
    to->since_ns = result.first_real_ns;
    to->until_ns = result.last_real_ns;
    to->sensitive = result.sensitive;
    to->n_partial = result.n_partial;
    to->coverage = result.coverage;
    memcpy(to->partial, result.partial, sizeof(to->partial));
    to->n_files = info->layout == LAYOUT_DIRECTORY ? 1 + job_build.output.n_files : 1;
    return 0;
}

static int snapshot_job_sync_and_seal(void *userdata, const char *name, int fd) {
    const Snapshot *job = userdata;

    if (fdatasync(fd) < 0)
        return -errno;
    seal_give(&job->engine->store->seal, fd, name, job->kept->info.sensitive);
    return 0;
}

static int snapshot_job_settle_data(Snapshot *job, int fd, const char *scratch) {
    bool folder = job->kept->info.layout == LAYOUT_DIRECTORY, is_folder;
    uint64_t bytes;
    int r = folder ? dirfd_each_file(fd, snapshot_job_sync_and_seal, job)
                   : snapshot_job_sync_and_seal(job, scratch, fd);

    if (r == 0 && folder) {
        seal_give(&job->engine->store->seal, fd, scratch, job->kept->info.sensitive);
        r = fsync(fd) < 0 ? -errno : 0;
    }
    if (r == 0)
        r = dirfd_measure(job->engine->folder, scratch, &bytes, &is_folder);
    if (r < 0)
        return r;
    job->kept->info.bytes = bytes;
    return snapshot_job_on_bytes(job, bytes);
}

static int snapshot_job_publish(Snapshot *job, const char *scratch) {
    SnapshotEngine *engine = job->engine;
    char data[SNAPSHOT_FILE_MAX], manifest[SNAPSHOT_FILE_MAX];
    _cleanup_close_ int fd = -1;
    struct stat st;
    int r;

    snapshot_data_name(&job->kept->info, data);
    snapshot_manifest_name(job->kept->info.name, manifest);
    r = snapshot_write_manifest(engine->folder, job->kept);
    if (r < 0)
        return r;
    fd = dirfd_open_file(engine->folder, manifest, &st);
    seal_give(&engine->store->seal, fd, manifest, job->kept->info.sensitive);
    r = atomic_load(&job->progress.cancelled) ? -ECANCELED
                                              : dirfd_rename(engine->folder, scratch, data);
    if (r < 0) {
        (void)unlinkat(engine->folder, manifest, 0);
        return r;
    }
    r = fsync(engine->folder) < 0 ? -errno : 0;
    /* The client is gone, or the name was taken: delete it. */
    if (r < 0) {
        (void)dirfd_remove(engine->folder, data);
        (void)unlinkat(engine->folder, manifest, 0);
    }
    return r;
}

static void snapshot_job_fail(Snapshot *job, int r) {
    SnapshotFailure *why = &job->failure;

    if (job->failed)
        return;
    job->failed = true;
    *why = (SnapshotFailure){.code = r,
                             .error = r == -EEXIST                   ? SNAPSHOT_EXISTS
                                      : r == -ECANCELED              ? SNAPSHOT_CANCELLED
                                      : r == -ENOSPC || r == -EDQUOT ? SNAPSHOT_DISK_FULL
                                                                     : SNAPSHOT_FAILED};
    snprintf(why->text, sizeof(why->text), "Failed to write snapshot '%s': %s",
             job->kept->info.name, strerror(-r));
}

static bool snapshot_job_is_there(const Snapshot *job) {
    char data[SNAPSHOT_FILE_MAX];

    snapshot_data_name(&job->kept->info, data);
    return faccessat(job->engine->folder, data, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* A file that profd did not make may already have the name. */
static int snapshot_job_settle_name(Snapshot *job) {
    unsigned number = 1;

    while (snapshot_job_is_there(job)) {
        if (!job->chooses_name || number == NAMES_MAX)
            return -EEXIST;
        snapshot_next_name(job, &number);
    }
    return 0;
}

void snapshot_job_run(Snapshot *job) {
    char scratch[SNAPSHOT_FILE_MAX];
    _cleanup_close_ int fd = -1;
    int r = snapshot_folder_regain(job->engine, &job->kept->generation);

    disk_touch(__func__);
    if (r == 0)
        r = snapshot_job_settle_name(job);
    snapshot_job_scratch_name(job, scratch);
    if (r == 0)
        r = fd = snapshot_job_create(job, scratch);
    if (r >= 0)
        r = snapshot_job_build(job, fd);
    if (r >= 0)
        r = snapshot_job_settle_data(job, fd, scratch);
    /* A file of that name in another folder is at best a copy of an unfinished one. */
    if (r >= 0 && snapshot_is_lost(job->engine, job->kept))
        r = -ESTALE;
    if (r >= 0 && !job->kept->info.transient)
        r = snapshot_job_publish(job, scratch);
    if (r >= 0)
        return;
    snapshot_job_fail(job, r);
    if (fd >= 0)
        (void)dirfd_remove(job->engine->folder, scratch);
}
