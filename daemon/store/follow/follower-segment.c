/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "store/follow/follower-segment.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "store/disk/dirfd.h"
#include "store/folder/store-private.h"

/*
 * A segment is read from its begin to its end, in the order of the file. While it is open, its
 * writer publishes where the last sweep ended in each file, and nothing behind that is read. It
 * keeps its inode when it is finished and renamed, so the descriptors stay.
 */

void follower_state_done(FollowerState *state) {
    state->manifest = manifest_free(state->manifest);
}

/* Only what is needed, since the index may be large. Call it with both mutexes held. */
static int follower_state_copy_view(const SegmentView *view, FollowerState *ret) {
    const Manifest *from = view->manifest;
    int r = manifest_new(&ret->manifest);

    if (r < 0)
        return r;
    ret->name = view->name;
    ret->is_open = true;
    ret->floor_ns = view->floor_ns;
    ret->n_files = view->n_files;
    memcpy(ret->ends, view->ends, sizeof(ret->ends));
    ret->manifest->directory = from->directory;
    ret->manifest->sensitive = from->sensitive;
    ret->manifest->covered = from->covered;
    ret->manifest->after = from->after;
    for (size_t i = 0; r == 0 && i < from->n_anchors; i++)
        r = manifest_add_anchor(ret->manifest, &from->anchors[i]);
    return r == 0 ? pd_coverage_copy(&from->coverage, &ret->manifest->coverage) : r;
}

/* Call it with the store's mutex held. */
static int follower_state_find_open(const Folder *folder, uint64_t number, FollowerState *ret,
                                    bool *ret_records) {
    StoreSession *session = folder->session;
    int r = 0;

    if (!session)
        return 0;
    pthread_mutex_lock(&session->mutex);
    *ret_records = session->view.manifest;
    if (session->view.manifest && session->view.name.number >= number)
        r = follower_state_copy_view(&session->view, ret) ?: 1;
    pthread_mutex_unlock(&session->mutex);
    return r;
}

static int follower_state_read(Store *store, Folder *folder, const Entry *entry,
                               const char *session, FollowerState *ret) {
    _cleanup_close_ int fd = store_folder_fd(store, folder);
    int r =
        fd < 0 ? fd : manifest_read(fd, &entry->name, entry->directory, session, &ret->manifest);

    if (r < 0)
        return r;
    ret->name = entry->name;
    ret->n_files = entry->directory ? SEGMENT_FILES_MAX : 0;
    return 1;
}

int follower_state_find(Store *store, const char *session, uint64_t number, FollowerState *ret,
                        bool *ret_records) {
    for (;;) {
        FollowerState state = {};
        Entry entry = {};
        Folder *folder;
        bool is_closed = false;
        int r = -ENOENT;

        *ret_records = false;
        pthread_mutex_lock(&store->mutex);
        folder = store_folder(store, session);
        if (folder)
            r = follower_state_find_open(folder, number, &state, ret_records);
        for (size_t i = 0; r >= 0 && !is_closed && i < folder->n_entries; i++) {
            entry = folder->entries[i];
            is_closed = entry.name.number >= number && entry.name.state == SEGMENT_CLOSED &&
                        (r == 0 || entry.name.number <= state.name.number);
        }
        pthread_mutex_unlock(&store->mutex);
        if (r >= 0 && is_closed) {
            follower_state_done(&state);
            state = (FollowerState){};
            r = follower_state_read(store, folder, &entry, session, &state);
        }
        if (r > 0) {
            *ret = state;
            return 1;
        }
        follower_state_done(&state);
        if (r == 0 || !is_closed || r == -ENOMEM)
            return r == -ENOENT ? 0 : r;
        /* It was deleted, or nothing is known of it. */
        number = entry.name.number + 1;
    }
}

static int follower_segment_open_file(FollowerSegment *s, uint32_t file) {
    _cleanup_close_ int fd = window_open_file(&s->part, file);
    int r = fd < 0 ? fd : pd_frames_new(fd, &s->files[file]);

    if (r == 0)
        (void)TAKE_FD(fd);
    return r;
}

/* The header: where the data begins and ends, and which events there are. */
static int follower_segment_read_header(FollowerSegment *s, bool is_open) {
    _cleanup_(pd_reader_freep) PdReader *reader = NULL;
    _cleanup_close_ int fd = window_open_file(&s->part, 0);
    const PdHeader *header;
    Bytes tracing;
    int r = fd < 0 ? fd : pd_reader_open_fd(fd, NULL, &reader, NULL);

    if (r < 0)
        return r;
    (void)TAKE_FD(fd);
    header = pd_reader_header(reader);
    if (header->swap)
        return -EBADMSG;
    if (s->at[0] == 0)
        s->at[0] = header->data_offset;
    if (!is_open)
        s->ends[0] = header->data_offset + header->data_size;
    if (is_open || s->events)
        return 0;
    r = segment_view_copy_events(pd_reader_events(reader), &s->events);
    if (r == 0 && pd_reader_feature(reader, PD_FEATURE_TRACING_DATA, &tracing) == 0)
        buffer_append(&s->tracing, tracing.data, tracing.size);
    return r < 0 ? r : buffer_error(&s->tracing);
}

static int follower_segment_open_closed(Store *store, const char *session, WindowPart *part) {
    _cleanup_close_ int folder_fd = -1;
    char text[SEGMENT_NAME_MAX];
    struct stat st;
    Folder *folder;

    pthread_mutex_lock(&store->mutex);
    folder = store_folder(store, session);
    pthread_mutex_unlock(&store->mutex);
    folder_fd = folder ? store_folder_fd(store, folder) : -ENOENT;
    if (folder_fd < 0)
        return folder_fd;
    segment_name_print(&part->name, text);
    if (!part->directory) {
        part->fd = dirfd_open_file(folder_fd, text, &st);
        return MIN(part->fd, 0);
    }
    part->fd = openat(folder_fd, text, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return part->fd < 0 ? -errno : 0;
}

/* -ESTALE: it is open no longer. */
static int follower_segment_open_view(Store *store, const char *session, FollowerSegment *s) {
    StoreSession *of;
    Folder *folder;
    int r = -ESTALE;

    pthread_mutex_lock(&store->mutex);
    folder = store_folder(store, session);
    of = folder ? folder->session : NULL;
    if (of)
        pthread_mutex_lock(&of->mutex);
    if (of && of->view.manifest && of->view.name.number == s->part.name.number) {
        s->part.fd = fcntl(of->view.fd, F_DUPFD_CLOEXEC, 0);
        r = s->part.fd < 0 ? -errno : segment_view_copy_events(of->view.events, &s->events);
        buffer_append(&s->tracing, of->view.tracing.data, of->view.tracing.size);
    }
    if (of)
        pthread_mutex_unlock(&of->mutex);
    pthread_mutex_unlock(&store->mutex);
    return r < 0 ? r : buffer_error(&s->tracing);
}

void follower_segment_init(FollowerSegment *s) {
    *s = (FollowerSegment){.part = {.fd = -1, .manifest_fd = -1, .view = {.fd = -1}}};
}

void follower_segment_done(FollowerSegment *s) {
    for (size_t i = 0; i < ARRAY_SIZE(s->files); i++)
        pd_frames_free(s->files[i]);
    pd_events_free(s->events);
    buffer_done(&s->tracing);
    window_part_close(&s->part);
    follower_segment_init(s);
}

int follower_segment_open(Store *store, const char *session, const FollowerState *state,
                          FollowerSegment *ret) {
    FollowerSegment s = {.part = {.name = state->name,
                                  .directory = state->manifest->directory,
                                  .fd = -1,
                                  .manifest_fd = -1,
                                  .view = {.fd = -1}},
                         .n_files = state->n_files};
    int r = store_lease_new(store, session, state->name.number, &s.part.lease);

    if (r == 0)
        r = state->is_open ? follower_segment_open_view(store, session, &s)
                           : follower_segment_open_closed(store, session, &s.part);
    if (r == 0)
        r = follower_segment_read_header(&s, state->is_open);
    for (uint32_t file = 0; r == 0 && file <= s.n_files; file++) {
        r = follower_segment_open_file(&s, file);
        if (r == -ENOENT && file > 0) {
            s.n_files = file - 1;
            r = 0;
        }
    }
    if (r == 0 && !state->is_open)
        r = follower_segment_finish(&s);
    if (r < 0) {
        follower_segment_done(&s);
        return r;
    }
    *ret = s;
    return 0;
}

int follower_segment_finish(FollowerSegment *s) {
    for (uint32_t file = 1; file <= s->n_files; file++) {
        _cleanup_close_ int fd = window_open_file(&s->part, file);
        struct stat st;

        if (fd < 0 || fstat(fd, &st) < 0)
            return fd < 0 ? fd : -errno;
        s->ends[file] = (uint64_t)st.st_size;
    }
    return follower_segment_read_header(s, false);
}

int follower_segment_read(FollowerSegment *s, int (*take)(void *userdata, const PdRecord *record),
                          void *userdata) {
    for (uint32_t file = 0; file <= s->n_files; file++) {
        PdRecord record;
        int r;

        if (s->at[file] >= s->ends[file])
            continue;
        pd_frames_seek(s->files[file], s->at[file], s->ends[file]);
        while ((r = pd_frames_next(s->files[file], &record)) > 0) {
            r = take(userdata, &record);
            if (r < 0)
                return r;
        }
        if (r < 0)
            return r;
        s->at[file] = s->ends[file];
    }
    return 0;
}
