/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/reader/reader-private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "util/macro.h"

/*
 * Creates a reader from a path, a descriptor or memory, and frees it. The reader owns a descriptor
 * only if opening succeeds. A directory is opened twice, as the folder and as its `data`.
 */

enum { FEATURE_BYTES = 64 * 1024 * 1024, WINDOW_LOG = 27 };

static int reader_new(const PdReaderLimits *limits, PdReader **ret) {
    _cleanup_(pd_reader_freep) PdReader *r = calloc(1, sizeof(*r));
    int rc;

    if (!r)
        return -ENOMEM;
    r->main.fd = r->part.fd = r->folder_fd = -1;
    r->source = &r->main;
    r->limits = limits ? *limits : (PdReaderLimits){};
    r->limits.feature_bytes = r->limits.feature_bytes ?: FEATURE_BYTES;
    r->limits.window_log = r->limits.window_log ?: WINDOW_LOG;
    rc = pd_events_new(&r->events);
    if (rc < 0)
        return rc;
    *ret = TAKE_PTR(r);
    return 0;
}

PdReader *pd_reader_free(PdReader *reader) {
    if (!reader)
        return NULL;
    source_done(&reader->main);
    source_done(&reader->part);
    closep(&reader->folder_fd);
    pd_events_free(reader->events);
    decompress_free(reader->decompress);
    features_done(reader);
    free(reader->parts);
    free(reader->others);
    free(reader);
    return NULL;
}

/* Reads everything before the records from the open source. */
static int reader_begin(PdReader *r, PdDamage *why) {
    int rc;

    rc = header_open(r, why);
    if (rc < 0)
        return rc;
    r->header.n_files = 1 + (unsigned)r->n_parts;
    r->total += r->main.stream ? 0 : r->main.size;
    if (r->header.mode == PD_MODE_PIPE)
        return 0;
    if (r->folder_fd >= 0)
        r->header.mode = PD_MODE_DIRECTORY;
    return intake_names(r);
}

/* On success the reader owns the descriptor of the folder. */
static int reader_open_folder(PdReader *r, int fd, PdDamage *why) {
    _cleanup_close_ int data = openat(fd, "data", O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat st;
    int rc;

    if (data < 0) {
        why_set(why, 0, "the folder has no `data` that can be opened: %s", strerror(errno));
        return errno == ENOENT ? -EBADMSG : -errno;
    }
    if (fstat(data, &st) < 0 || !S_ISREG(st.st_mode)) {
        why_set(why, 0, "`data` in the folder is no regular file");
        return -EBADMSG;
    }
    rc = source_open_fd(&r->main, data);
    if (rc < 0)
        return rc;
    (void)TAKE_FD(data);
    rc = folder_list(fd, &r->parts, &r->n_parts);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < r->n_parts; i++) {
        char name[32];

        snprintf(name, sizeof(name), "data.%u", r->parts[i]);
        if (fstatat(fd, name, &st, 0) == 0 && st.st_size > 0)
            r->total += (uint64_t)st.st_size;
    }
    r->folder_fd = fd;
    rc = reader_begin(r, why);
    if (rc < 0)
        r->folder_fd = -1;
    return rc;
}

int pd_reader_open_fd(int fd, const PdReaderLimits *limits, PdReader **ret, PdDamage *ret_why) {
    _cleanup_(pd_reader_freep) PdReader *r = NULL;
    int rc;

    why_set(ret_why, 0, "%s", "");
    rc = reader_new(limits, &r);
    if (rc == 0)
        rc = source_open_fd(&r->main, fd);
    if (rc == -EISDIR)
        rc = reader_open_folder(r, fd, ret_why);
    else if (rc == 0) {
        rc = reader_begin(r, ret_why);
        if (rc < 0)
            r->main.fd = -1; /* the caller keeps it */
    }
    if (rc < 0) {
        if (ret_why && ret_why->text[0] == '\0')
            why_set(ret_why, 0, "it cannot be read: %s", strerror(-rc));
        return rc;
    }
    *ret = TAKE_PTR(r);
    return 0;
}

int pd_reader_open(const char *path, const PdReaderLimits *limits, PdReader **ret,
                   PdDamage *ret_why) {
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    int r;

    if (fd < 0) {
        r = -errno;
        why_set(ret_why, 0, "it cannot be opened: %s", strerror(-r));
        return r;
    }
    r = pd_reader_open_fd(fd, limits, ret, ret_why);
    if (r < 0)
        return r;
    (void)TAKE_FD(fd);
    return 0;
}

int pd_reader_open_memory(Bytes bytes, const PdReaderLimits *limits, PdReader **ret,
                          PdDamage *ret_why) {
    _cleanup_(pd_reader_freep) PdReader *r = NULL;
    int rc;

    why_set(ret_why, 0, "%s", "");
    rc = reader_new(limits, &r);
    if (rc < 0)
        return rc;
    source_open_memory(&r->main, bytes);
    rc = reader_begin(r, ret_why);
    if (rc < 0)
        return rc;
    *ret = TAKE_PTR(r);
    return 0;
}
