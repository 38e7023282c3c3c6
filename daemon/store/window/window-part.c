/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "store/disk/dirfd.h"
#include "store/window/window.h"

/*
 * Opens and reads the segments of a window one by one. A long window would need too many
 * descriptors and manifests at once, so only some parts are open, those that retention would take
 * next, and two manifests are loaded.
 */

enum { OPEN_MAX = 64 };

void window_part_close(WindowPart *part) {
    segment_view_done(&part->view);
    part->manifest = manifest_free(part->manifest);
    part->lease = store_lease_free(part->lease);
    closep(&part->manifest_fd);
    closep(&part->fd);
}

const Manifest *window_manifest(const WindowPart *part) {
    return part->view.manifest ? part->view.manifest : part->manifest;
}

static int window_open_closed(Window *w, WindowPart *part) {
    char text[SEGMENT_NAME_MAX];
    struct stat st;
    int r = store_lease_new(w->store, w->session, part->name.number, &part->lease);

    if (r < 0)
        return r;
    segment_name_print(&part->name, text);
    if (part->manifest_fd < 0)
        part->manifest_fd = manifest_open(w->folder, &part->name, part->directory);
    if (part->manifest_fd < 0)
        return part->manifest_fd;
    if (!part->directory) {
        part->fd = dirfd_open_file(w->folder, text, &st);
        return MIN(part->fd, 0);
    }
    part->fd = openat(w->folder, text, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return part->fd < 0 ? -errno : 0;
}

static int window_open_part(Window *w, WindowPart *part) {
    int r;

    if (part->view.manifest) {
        part->fd = TAKE_FD(part->view.fd);
        return store_lease_new(w->store, w->session, part->name.number, &part->lease);
    }
    r = window_open_closed(w, part);
    if (r != -ENOENT && r != -ENOTDIR && r != -EBADMSG)
        return r;
    part->gone = true;
    window_note_partial(w, "Segment %08" PRIu64 " was deleted while it was read",
                        part->name.number);
    return 0;
}

int window_open_ahead(Window *w) {
    size_t open = 0;
    int r = 0;

    for (size_t i = 0; i < w->n_opened; i++)
        open += w->parts[i].fd >= 0;
    for (; r == 0 && w->n_opened < w->n_parts && open < OPEN_MAX; w->n_opened++) {
        r = window_open_part(w, &w->parts[w->n_opened]);
        open++;
    }
    return r;
}

int window_open_file(const WindowPart *part, uint32_t file) {
    char name[24];
    struct stat st;
    int fd;

    if (!part->directory) {
        fd = file == 0 ? fcntl(part->fd, F_DUPFD_CLOEXEC, 0) : -1;
        return fd < 0 ? -EBADMSG : fd;
    }
    snprintf(name, sizeof(name), "data.%u", file - 1);
    return dirfd_open_file(part->fd, file == 0 ? "data" : name, &st);
}

static int window_load_manifest(Window *w, WindowPart *part) {
    _cleanup_(buffer_done) Buffer json = {};
    int r;

    /* Opens parts that are not open yet; a part that is gone is noted when it is processed. */
    if (part->manifest_fd < 0)
        part->manifest_fd = manifest_open(w->folder, &part->name, part->directory);
    r = part->manifest_fd < 0 ? -EBADMSG
                              : dirfd_read_fd(part->manifest_fd, MANIFEST_BYTES_MAX, &json);

    if (r == 0)
        r = manifest_decode(buffer_bytes(&json), &part->manifest);
    return r == -EFBIG ? -EBADMSG : r;
}

int window_read_manifest(Window *w, WindowPart *part) {
    int r;

    if (window_manifest(part))
        return 0;
    r = part->gone ? -EBADMSG : window_load_manifest(w, part);
    if (r != -EBADMSG)
        return r;
    if (!part->gone)
        window_note_partial(
            w, "The manifest of segment %08" PRIu64 " makes no sense, the segment is left out",
            part->name.number);
    part->gone = true;
    return manifest_new(&part->manifest);
}

/* Takes the attrs from the file; names and groups of the open segment come from its view. */
static int window_complete_events(const WindowPart *part, PdReader *reader, PdEvents *events) {
    _cleanup_(pd_environment_freep) PdEnvironment *env = NULL;
    Bytes body;
    int r;

    for (size_t i = 0; i < pd_events_count(events) && part->view.events; i++) {
        const PdEvent *known =
            i < pd_events_count(part->view.events) ? pd_events_at(part->view.events, i) : NULL;

        if (!known)
            return -EBADMSG;
        pd_events_at(events, i)->leader = known->leader;
        r = pd_events_set_name(
            events, pd_events_at(events, i),
            (Bytes){.data = (const uint8_t *)known->name, .size = strlen(known->name)});
        if (r < 0)
            return r;
    }
    if (part->view.events || pd_reader_feature(reader, PD_FEATURE_GROUP_DESC, &body) < 0)
        return 0;
    r = pd_environment_new(&env);
    if (r == 0)
        r = pd_environment_read(env, PD_FEATURE_GROUP_DESC, body, false);
    for (size_t i = 0; r == 0 && i < env->n_groups; i++)
        for (uint32_t k = 0; k < env->groups[i].n_members; k++) {
            uint64_t at = (uint64_t)env->groups[i].leader + k;

            if (at < pd_events_count(events))
                pd_events_at(events, at)->leader = env->groups[i].leader;
        }
    return r == -EBADMSG ? 0 : r;
}

static int window_load_events(const WindowPart *part, PdEvents **ret) {
    _cleanup_(pd_reader_freep) PdReader *reader = NULL;
    _cleanup_(pd_events_freep) PdEvents *events = NULL;
    _cleanup_close_ int fd = window_open_file(part, 0);
    int r = fd < 0 ? fd : pd_reader_open_fd(fd, NULL, &reader, NULL);

    if (r < 0)
        return r;
    (void)TAKE_FD(fd);
    if (pd_reader_header(reader)->swap)
        return -EBADMSG;
    r = pd_events_new(&events);
    for (size_t i = 0; r == 0 && i < pd_events_count(pd_reader_events(reader)); i++)
        r = pd_events_copy(events, pd_events_at(pd_reader_events(reader), i));
    if (r == 0)
        r = window_complete_events(part, reader, events);
    if (r == 0)
        *ret = TAKE_PTR(events);
    return r;
}

static bool window_same_events(const PdEvents *a, const PdEvents *b) {
    if (pd_events_count(a) != pd_events_count(b))
        return false;
    for (size_t i = 0; i < pd_events_count(a); i++) {
        const PdEvent *x = pd_events_at(a, i), *y = pd_events_at(b, i);

        if (x->n_ids != y->n_ids || x->raw_size != y->raw_size || x->leader != y->leader ||
            strcmp(x->name, y->name) != 0 ||
            (x->n_ids > 0 && memcmp(x->ids, y->ids, x->n_ids * sizeof(*x->ids)) != 0) ||
            (x->raw_size > 0 && memcmp(x->raw, y->raw, x->raw_size) != 0))
            return false;
    }
    return true;
}

static int window_add_source(Window *w, PdEvents *events) {
    PdEventSource *sources;
    PdEvents **lists;

    sources = reallocarray(w->sources, w->n_sources + 1, sizeof(*sources));
    if (!sources)
        return -ENOMEM;
    w->sources = sources;
    lists = reallocarray(w->source_events, w->n_sources + 1, sizeof(PdEvents *));
    if (!lists)
        return -ENOMEM;
    w->source_events = lists;
    w->source_events[w->n_sources] = events;
    w->sources[w->n_sources++] = (PdEventSource){.events = events};
    return 0;
}

static int window_add_events(Window *w, WindowPart *part) {
    _cleanup_(pd_events_freep) PdEvents *events = NULL;
    int r = window_load_events(part, &events);

    if (r == -EBADMSG || r == -ENOENT) {
        part->gone = true;
        window_note_partial(w, "Segment %08" PRIu64 " cannot be read and is left out",
                            part->name.number);
        return 0;
    }
    if (r < 0)
        return r;
    if (w->n_sources > 0 && window_same_events(w->source_events[w->n_sources - 1], events)) {
        part->source = w->n_sources - 1;
        return 0;
    }
    r = window_add_source(w, events);
    if (r == 0) {
        (void)TAKE_PTR(events);
        part->source = w->n_sources - 1;
    }
    return r;
}

/* Parts beyond the limit of open files are opened only for this. */
int window_read_events(Window *w) {
    int r = 0;

    for (size_t i = 0; r == 0 && i < w->n_parts; i++) {
        WindowPart *part = &w->parts[i];
        bool early = i >= w->n_opened;

        if (early)
            r = window_open_part(w, part);
        if (r == 0 && !part->gone)
            r = window_add_events(w, part);
        if (early) {
            part->view.fd = part->view.manifest ? TAKE_FD(part->fd) : -1;
            part->lease = store_lease_free(part->lease);
            closep(&part->manifest_fd);
            closep(&part->fd);
        }
    }
    return r;
}
