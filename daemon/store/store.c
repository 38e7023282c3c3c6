/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "store/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include "perfdata/encode.h"
#include "perfdata/writer.h"
#include "util/file.h"
#include "util/log.h"

/*
 * A store is STORE/sessions/default with one file a segment, NNNNNNNN-UTC.perf.data, `.open`
 * behind it while it is written. The number, not the clock, is the order. Nothing is overwritten:
 * a name that exists is an error. What a killed daemon left open is finished at the next start and
 * marked by a `~`, so that nobody takes it for a whole one.
 */

#define SUFFIX           ".perf.data"
#define SUFFIX_OPEN      SUFFIX ".open"
#define SUFFIX_RECOVERED "~" SUFFIX

enum { FOLDER_MODE = 0750, FILE_MODE = 0640, NAME_BYTES = 64 };

struct Store {
    char *folder;
    int folder_fd;
    int lock_fd;
    uint64_t next_number;
};

struct Segment {
    Store *store;
    char *path;
    char name[NAME_BYTES]; /* without suffix */
    int fd;
    PdWriter *writer;
};

static void closedirp(DIR **d) {
    if (*d)
        (void)closedir(*d);
}

static int take_lock(Store *store) {
    store->lock_fd = openat(store->folder_fd, ".lock", O_RDWR | O_CREAT | O_CLOEXEC, FILE_MODE);
    if (store->lock_fd < 0)
        return log_error(-errno, "Failed to open the lock of store '%s': %m", store->folder);
    if (flock(store->lock_fd, LOCK_EX | LOCK_NB) < 0)
        return log_error(errno == EWOULDBLOCK ? -EBUSY : -errno,
                         "Failed to lock store '%s', is another profd recording into it? (%m)",
                         store->folder);
    return 0;
}

static bool ends_with(const char *name, const char *suffix) {
    size_t n = strlen(name), k = strlen(suffix);

    return n >= k && strcmp(name + n - k, suffix) == 0;
}

/* Finishes a segment that nobody will write again; what cannot be mended stays as it is. */
static void recover(Store *store, const char *name, const PdEnvironment *environment) {
    char final[NAME_MAX + 1];
    _cleanup_close_ int fd = -1;
    PdRecovery recovery;
    int r;

    fd = openat(store->folder_fd, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    r = fd < 0 ? -errno : pd_segment_recover(fd, PD_LAYOUT_FILE, environment, &recovery);
    if (r < 0 && r != -EALREADY) {
        log_warning(r, "Failed to recover segment '%s/%s', leaving it as it is: %m", store->folder,
                    name);
        return;
    }
    snprintf(final, sizeof(final), "%.*s" SUFFIX_RECOVERED,
             (int)(strlen(name) - strlen(SUFFIX_OPEN)), name);
    if (fsync(fd) < 0 ||
        renameat2(store->folder_fd, name, store->folder_fd, final, RENAME_NOREPLACE) < 0) {
        log_warning(-errno, "Failed to rename recovered segment '%s' to '%s', leaving it: %m", name,
                    final);
        return;
    }
    if (r == -EALREADY)
        log_notice("Segment '%s' was finished but not renamed, named it '%s'", name, final);
    else
        log_notice("Recovered segment '%s' as '%s' with %" PRIu64 " samples, %" PRIu64
                   " bytes cut off",
                   name, final, recovery.samples, recovery.cut_bytes);
}

/* Looks through the folder once: the next number, and what was left open. */
static int survey(Store *store, const PdEnvironment *environment) {
    _cleanup_(closedirp) DIR *dir = opendir(store->folder);

    if (!dir)
        return log_error(-errno, "Failed to list store '%s': %m", store->folder);
    for (struct dirent *e; (e = readdir(dir));) {
        uint64_t number;
        char dash;

        if (sscanf(e->d_name, "%8" SCNu64 "%c", &number, &dash) != 2 || dash != '-')
            continue;
        store->next_number = MAX(store->next_number, number + 1);
        if (ends_with(e->d_name, SUFFIX_OPEN))
            recover(store, e->d_name, environment);
    }
    return 0;
}

int store_open(const char *path, const PdEnvironment *environment, Store **ret) {
    _cleanup_(store_freep) Store *store = calloc(1, sizeof(*store));
    int r;

    if (!store)
        return -ENOMEM;
    store->folder_fd = store->lock_fd = -1;
    store->next_number = 1;
    if (asprintf(&store->folder, "%s/sessions/default", path) < 0)
        return -ENOMEM;
    r = file_make_folders(store->folder, FOLDER_MODE);
    if (r < 0)
        return log_error(r, "Failed to make folder '%s': %m", store->folder);
    store->folder_fd = open(store->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (store->folder_fd < 0)
        return log_error(-errno, "Failed to open folder '%s': %m", store->folder);
    r = take_lock(store);
    if (r == 0)
        r = survey(store, environment);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(store);
    return 0;
}

Store *store_free(Store *store) {
    if (!store)
        return NULL;
    closep(&store->lock_fd);
    closep(&store->folder_fd);
    free(store->folder);
    free(store);
    return NULL;
}

static int name_segment(Segment *segment) {
    time_t now = time(NULL);
    char stamp[32];
    struct tm utc;

    if (!gmtime_r(&now, &utc) || strftime(stamp, sizeof(stamp), "%Y%m%dT%H%M%SZ", &utc) == 0)
        return -EINVAL;
    snprintf(segment->name, sizeof(segment->name), "%08" PRIu64 "-%s", segment->store->next_number,
             stamp);
    if (asprintf(&segment->path, "%s/%s" SUFFIX, segment->store->folder, segment->name) < 0)
        return -ENOMEM;
    return 0;
}

/* The attrs, and their names in EVENT_DESC. */
static int describe_events(PdWriter *writer, const PdEvents *events) {
    _cleanup_(buffer_done) Buffer description = {};
    int r = 0;

    for (size_t i = 0; r == 0 && i < pd_events_count(events); i++)
        r = pd_writer_add_event(writer, pd_events_at(events, i));
    pd_encode_event_desc(&description, events, false);
    if (r == 0)
        r = buffer_error(&description);
    return r < 0 ? r
                 : pd_writer_set_feature(writer, PD_FEATURE_EVENT_DESC, buffer_bytes(&description));
}

int segment_new(Store *store, const PdEvents *events, int zstd_level, Segment **ret) {
    PdWriterOptions options = {.layout = PD_LAYOUT_FILE, .zstd_level = zstd_level, .tally = true};
    _cleanup_(segment_freep) Segment *segment = calloc(1, sizeof(*segment));
    char open_name[NAME_BYTES + sizeof(SUFFIX_OPEN)];
    int r;

    if (!segment)
        return -ENOMEM;
    *segment = (Segment){.store = store, .fd = -1};
    r = name_segment(segment);
    if (r < 0)
        return r;
    snprintf(open_name, sizeof(open_name), "%s" SUFFIX_OPEN, segment->name);
    segment->fd =
        openat(store->folder_fd, open_name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, FILE_MODE);
    if (segment->fd < 0)
        return log_error(-errno, "Failed to create segment '%s/%s': %m", store->folder, open_name);
    r = pd_writer_new(segment->fd, &options, &segment->writer);
    if (r == 0)
        r = describe_events(segment->writer, events);
    if (r == 0)
        r = pd_writer_begin(segment->writer);
    if (r < 0)
        return log_error(r, "Failed to begin segment '%s/%s': %m", store->folder, open_name);
    store->next_number++;
    *ret = TAKE_PTR(segment);
    return 0;
}

Segment *segment_free(Segment *segment) {
    if (!segment)
        return NULL;
    pd_writer_free(segment->writer);
    closep(&segment->fd);
    free(segment->path);
    free(segment);
    return NULL;
}

static int log_write_failure(const Segment *segment, int error) {
    return error < 0 ? log_error(error, "Failed to write segment '%s.open': %m", segment->path) : 0;
}

int segment_write(Segment *segment, Bytes records) {
    return log_write_failure(segment,
                             pd_writer_write(segment->writer, 0, records.data, records.size));
}

int segment_flush(Segment *segment) {
    return log_write_failure(segment, pd_writer_flush(segment->writer));
}

int segment_finish(Segment *segment, const PdEnvironment *environment) {
    char from[NAME_BYTES + sizeof(SUFFIX_OPEN)], to[NAME_BYTES + sizeof(SUFFIX)];
    Store *store = segment->store;
    int r = pd_writer_set_environment(segment->writer, environment);

    if (r == 0)
        r = pd_writer_finish(segment->writer);
    if (r == 0 && fsync(segment->fd) < 0)
        r = -errno;
    snprintf(from, sizeof(from), "%s" SUFFIX_OPEN, segment->name);
    snprintf(to, sizeof(to), "%s" SUFFIX, segment->name);
    if (r == 0 && renameat2(store->folder_fd, from, store->folder_fd, to, RENAME_NOREPLACE) < 0)
        r = -errno;
    if (r == 0 && fsync(store->folder_fd) < 0)
        r = -errno;
    return r < 0 ? log_error(r, "Failed to finish segment '%s': %m", segment->path) : 0;
}

const char *segment_path(const Segment *segment) {
    return segment->path;
}
