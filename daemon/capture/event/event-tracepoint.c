/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <dirent.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>

#include "capture/event/event-parse.h"

/*
 * Tracepoints: "sched:sched_switch", and globs on either side of the colon. tracefs belongs to
 * root, so the keeper opens what is read: the id of one tracepoint, and for globs the folder of a
 * system or of all systems, of which only names can be read.
 */

enum {
    PATH_SIZE = 2 * EVENT_WORD_MAX + 16,
};

static int event_tracepoint_open_tracefs(const EventParser *p, const char *path, int *ret_fd) {
    return p->host->open_tracefs ? p->host->open_tracefs(p->host->userdata, path, ret_fd) : -ENOENT;
}

/* The names that the kernel makes; none leads out of the folder. */
static bool event_tracepoint_is_name(const char *name) {
    return name[0] != '.' &&
           name[strspn(
               name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")] == '\0';
}

static bool event_tracepoint_is_glob(const char *name) {
    return strpbrk(name, "*?[") != NULL;
}

static int event_tracepoint_read_id(const EventParser *p, const char *system, const char *name,
                                    uint64_t *ret) {
    _cleanup_close_ int fd = -1;
    char path[PATH_SIZE], text[32];
    ssize_t n;
    int r;

    (void)snprintf(path, sizeof(path), "%s/%s/id", system, name);
    r = event_tracepoint_open_tracefs(p, path, &fd);
    if (r < 0)
        return r;
    n = read(fd, text, sizeof(text));
    if (n < 0)
        return -errno;
    while (n > 0 && text[n - 1] == '\n')
        n--;
    return event_number((Bytes){.data = (const uint8_t *)text, .size = (size_t)n}, ret) < 0
               ? -EBADMSG
               : 0;
}

static int event_tracepoint_add(EventParser *p, const char *system, const char *name) {
    uint64_t id;
    EventSpec *s;
    int r = event_tracepoint_read_id(p, system, name, &id);

    if (r < 0)
        return r;
    s = event_list_add(p, &r);
    if (!s)
        return r;
    s->type = PERF_TYPE_TRACEPOINT;
    s->config = id;
    s->default_period = 1;
    s->system = strdup(system);
    s->tracepoint = strdup(name);
    if (asprintf(&s->name, "%s:%s", system, name) < 0)
        s->name = NULL;
    return s->system && s->tracepoint && s->name
               ? 0
               : event_fail(p, -ENOMEM, "does not fit into memory");
}

static bool event_tracepoint_is_matching(const struct dirent *entry, const void *pattern) {
    return entry->d_type == DT_DIR && event_tracepoint_is_name(entry->d_name) &&
           strlen(entry->d_name) < EVENT_WORD_MAX && event_glob(pattern, entry->d_name);
}

/* The folders in a folder that `pattern` matches, sorted. */
static int event_tracepoint_list_folder(const EventParser *p, const char *path, const char *pattern,
                                        char ***ret) {
    _cleanup_close_ int fd = -1;
    DIR *dir;
    int r = event_tracepoint_open_tracefs(p, path, &fd);

    if (r < 0)
        return r;
    dir = fdopendir(fd);
    if (!dir)
        return -errno;
    (void)TAKE_FD(fd);
    return event_names_read(dir, event_tracepoint_is_matching, pattern, strcmp, ret);
}

/* Adds all tracepoints of one system that `pattern` matches; skips those that a module removes
 * meanwhile. */
static int event_tracepoint_add_matching(EventParser *p, const char *system, const char *pattern) {
    char path[PATH_SIZE], **names = NULL;
    int r;

    if (!event_tracepoint_is_glob(pattern))
        return event_tracepoint_is_name(pattern) ? event_tracepoint_add(p, system, pattern)
                                                 : -ENOENT;
    (void)snprintf(path, sizeof(path), "%s/", system);
    r = event_tracepoint_list_folder(p, path, pattern, &names);
    for (size_t i = 0; r == 0 && names[i]; i++) {
        r = event_tracepoint_add(p, system, names[i]);
        r = r == -ENOENT ? 0 : r;
    }
    event_names_free(names);
    return r;
}

static int event_tracepoint_add_systems(EventParser *p, const char *system, const char *pattern) {
    char **systems = NULL;
    int r;

    if (!event_tracepoint_is_glob(system))
        return event_tracepoint_is_name(system) ? event_tracepoint_add_matching(p, system, pattern)
                                                : -ENOENT;
    r = event_tracepoint_list_folder(p, "./", system, &systems);
    for (size_t i = 0; r == 0 && systems[i]; i++) {
        r = event_tracepoint_add_matching(p, systems[i], pattern);
        r = r == -ENOENT ? 0 : r;
    }
    event_names_free(systems);
    return r;
}

/* Offers similar names: those of the system, if it exists, else the systems. */
static void event_tracepoint_look_near(const EventParser *p, const char *system, Bytes name,
                                       EventNear *near) {
    char path[PATH_SIZE], **names = NULL;

    (void)snprintf(path, sizeof(path), "%s/", system);
    near->wanted = name;
    if (!event_tracepoint_is_name(system) ||
        event_tracepoint_list_folder(p, path, "*", &names) < 0) {
        near->wanted = (Bytes){.data = (const uint8_t *)system, .size = strlen(system)};
        if (event_tracepoint_list_folder(p, "./", "*", &names) < 0)
            return;
    }
    for (size_t i = 0; names[i]; i++)
        event_near_offer(near, names[i]);
    event_names_free(names);
}

static int event_tracepoint_fail(EventParser *p, int r, const char *system) {
    if (r == -EACCES || r == -EPERM)
        return event_fail(p, r,
                          "is a tracepoint, and tracefs cannot be read without the rights of "
                          "root or CAP_DAC_READ_SEARCH");
    return event_fail(p, r, "cannot be looked up in tracefs below events/%s, %s", system,
                      strerror(-r));
}

int event_add_tracepoints(EventParser *p, Bytes system, Bytes name, EventNear *near) {
    char s[EVENT_WORD_MAX], n[EVENT_WORD_MAX];
    size_t before = p->list->n;
    int r;

    if (system.size >= sizeof(s) || name.size >= sizeof(n))
        return -ENOENT;
    memcpy(s, system.data, system.size);
    s[system.size] = '\0';
    memcpy(n, name.data, name.size);
    n[name.size] = '\0';
    p->error[0] = '\0';
    r = event_tracepoint_add_systems(p, s, n);
    if (r == 0 && p->list->n == before)
        r = -ENOENT;
    if (r == -ENOENT) {
        event_tracepoint_look_near(p, s, name, near);
        /* The name is borrowed from the text, but the system from this function. */
        if (near->wanted.data == (const uint8_t *)s)
            near->wanted = system;
    }
    return r < 0 && r != -ENOENT && p->error[0] == '\0' ? event_tracepoint_fail(p, r, s) : r;
}
