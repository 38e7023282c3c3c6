/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture/event/event-tracing.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "util/text.h"

/*
 * The tracing data of a recording is a container of tracefs files, each behind its size, as
 * trace.dat has them in version 0.6: byte order and sizes of this machine, the layout of a page of
 * the ring, formats of ftrace's own events and then those of the systems, symbols, the texts of
 * trace_printk, command lines. perf record leaves the symbols empty. The command lines are empty
 * too, because the COMM records of the recording have them.
 */

enum {
    FILE_SIZE_MAX = 1 << 20,
    CHUNK = 4096,
    PATH_SIZE = 600,
};

static int event_tracing_read_file(const EventHost *host, const char *path, Buffer *out) {
    _cleanup_close_ int fd = -1;
    size_t before = out->size;
    int r = host->open_tracefs ? host->open_tracefs(host->userdata, path, &fd) : -ENOENT;

    if (r < 0)
        return r;
    for (;;) {
        uint8_t *room = buffer_reserve(out, CHUNK);
        ssize_t n;

        if (!room)
            return buffer_error(out);
        n = read(fd, room, CHUNK);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            return 0;
        buffer_commit(out, (size_t)n);
        if (out->size - before > FILE_SIZE_MAX)
            return -EFBIG;
    }
}

/* Appends the file behind its size, a u64 or (for_small) a u32. A file that may be missing counts
 * as empty. */
static int event_tracing_put_file(const EventHost *host, const char *path, bool is_small,
                                  bool may_miss, Buffer *out) {
    size_t at = out->size, head = is_small ? 4 : 8;
    int r;

    buffer_zero(out, head);
    if (buffer_error(out) < 0)
        return buffer_error(out);
    r = event_tracing_read_file(host, path, out);
    if (r < 0 && !may_miss)
        return r;
    if (r < 0)
        out->size = at + head;
    if (is_small)
        store_u32(out->data + at, (uint32_t)(out->size - at - head), false);
    else
        store_u64(out->data + at, out->size - at - head, false);
    return 0;
}

static int event_tracing_put_head(const EventHost *host, Buffer *out) {
    int r;

    buffer_append(out, "\x17\x08\x44tracing0.6", 3 + strlen("tracing0.6") + 1);
    text_putc(out, __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
    text_putc(out, sizeof(long));
    buffer_u32(out, (uint32_t)sysconf(_SC_PAGESIZE), false);
    buffer_append(out, "header_page", sizeof("header_page"));
    r = event_tracing_put_file(host, "header_page", false, false, out);
    if (r < 0)
        return r;
    buffer_append(out, "header_event", sizeof("header_event"));
    return event_tracing_put_file(host, "header_event", false, false, out);
}

static bool event_tracing_is_ftrace(const EventSpec *s) {
    return s->system && strcmp(s->system, "ftrace") == 0;
}

/* The same tracepoint may occur twice, with other modifiers. */
static bool event_tracing_is_first(const EventList *list, size_t i) {
    for (size_t j = 0; j < i; j++)
        if (list->specs[j].system && list->specs[j].config == list->specs[i].config)
            return false;
    return true;
}

static bool event_tracing_belongs(const EventList *list, size_t i, const char *system) {
    const EventSpec *s = &list->specs[i];

    return s->system && strcmp(s->system, system) == 0 && event_tracing_is_first(list, i);
}

/* Appends their number and each one's format. */
static int event_tracing_put_system(const EventList *list, const EventHost *host,
                                    const char *system, Buffer *out) {
    uint32_t n = 0;
    int r = 0;

    for (size_t i = 0; i < list->n; i++)
        n += event_tracing_belongs(list, i, system);
    buffer_u32(out, n, false);
    for (size_t i = 0; i < list->n && r == 0; i++) {
        char path[PATH_SIZE];

        if (!event_tracing_belongs(list, i, system))
            continue;
        (void)snprintf(path, sizeof(path), "%s/%s/format", system, list->specs[i].tracepoint);
        r = event_tracing_put_file(host, path, false, false, out);
    }
    return r;
}

/* Whether the event is the first one of its system. */
static bool event_tracing_begins_system(const EventList *list, size_t i) {
    const EventSpec *s = &list->specs[i];

    if (!s->system || event_tracing_is_ftrace(s))
        return false;
    for (size_t j = 0; j < i; j++)
        if (list->specs[j].system && strcmp(list->specs[j].system, s->system) == 0)
            return false;
    return true;
}

static int event_tracing_put_systems(const EventList *list, const EventHost *host, Buffer *out) {
    uint32_t n = 0;
    int r = 0;

    for (size_t i = 0; i < list->n; i++)
        n += event_tracing_begins_system(list, i);
    buffer_u32(out, n, false);
    for (size_t i = 0; i < list->n && r == 0; i++)
        if (event_tracing_begins_system(list, i)) {
            const char *system = list->specs[i].system;

            buffer_append(out, system, strlen(system) + 1);
            r = event_tracing_put_system(list, host, system, out);
        }
    return r;
}

static int event_tracing_put_all(const EventList *list, const EventHost *host, Buffer *out) {
    int r = event_tracing_put_head(host, out);

    if (r == 0)
        r = event_tracing_put_system(list, host, "ftrace", out);
    if (r == 0)
        r = event_tracing_put_systems(list, host, out);
    buffer_u32(out, 0, false);
    if (r == 0)
        r = event_tracing_put_file(host, "../printk_formats", true, true, out);
    buffer_u64(out, 0, false);
    return r < 0 ? r : buffer_error(out);
}

int event_tracing(const EventList *list, const EventHost *host, Buffer *out) {
    size_t before = out->size;
    int r;

    for (size_t i = 0; i < list->n; i++) {
        if (!list->specs[i].system)
            continue;
        r = event_tracing_put_all(list, host, out);
        if (r < 0)
            out->size = before;
        return r;
    }
    return 0;
}
