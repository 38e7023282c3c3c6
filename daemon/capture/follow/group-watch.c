/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture/follow/group-watch.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

/*
 * Notices at once when control groups are made and removed. A session watches the lowest folder
 * above its group that exists: there the group, or the next folder on the way to it, comes and
 * goes. If the kernel grants no more watches, the lookup once a second is enough.
 */

enum { EVENTS_BYTES = 4096 };

static int group_watch_folder(const Sampler *sampler, const char *path) {
    const uint32_t mask = IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ONLYDIR;
    char folder[sizeof(sampler->groups->mount) + CONFIG_PATH_MAX + 1];
    size_t top = strlen(sampler->groups->mount);
    int wd = -1, n = snprintf(folder, sizeof(folder), "%s/%s", sampler->groups->mount, path);

    if (n < 0 || (size_t)n >= sizeof(folder))
        return -1;
    while (wd < 0 && strlen(folder) > top) {
        *strrchr(folder, '/') = '\0';
        wd = inotify_add_watch(sampler->groups_watch, folder, mask);
        if (wd < 0 && errno != ENOENT && errno != ENOTDIR)
            return -1;
    }
    return wd;
}

static bool group_watch_is_used(const Sampler *sampler, int wd) {
    for (const SamplerSession *s = sampler->sessions; s; s = s->next)
        if (s->group.is_followed && s->group.watch == wd)
            return true;
    return false;
}

void group_watch(SamplerSession *session) {
    const Sampler *sampler = session->sampler;
    SessionGroup *group = &session->group;
    int before = group->watch;

    if (sampler->groups_watch < 0)
        return;
    group->watch = group_watch_folder(sampler, group->path);
    if (before > 0 && before != group->watch && !group_watch_is_used(sampler, before))
        (void)inotify_rm_watch(sampler->groups_watch, before);
}

void group_unwatch(SamplerSession *session) {
    int wd = session->group.watch;

    session->group.watch = 0;
    if (wd > 0 && !group_watch_is_used(session->sampler, wd))
        (void)inotify_rm_watch(session->sampler->groups_watch, wd);
}

int group_watch_begin(Sampler *sampler, LoopCallback on_change) {
    if (!sampler->loop || sampler->groups_watch >= 0)
        return 0;
    sampler->groups_watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (sampler->groups_watch < 0)
        return 0;
    for (SamplerSession *s = sampler->sessions; s; s = s->next)
        if (s->group.is_followed)
            group_watch(s);
    return loop_add_readable(sampler->loop, sampler->groups_watch, on_change, sampler,
                             &sampler->groups_source);
}

void group_watch_end(Sampler *sampler) {
    sampler->groups_source = loop_source_free(sampler->groups_source);
    closep(&sampler->groups_watch);
}

/* The message only says that something happened: looking up the groups finds out what. */
void group_watch_read(const Sampler *sampler) {
    char events[EVENTS_BYTES];

    while (sampler->groups_watch >= 0 && read(sampler->groups_watch, events, sizeof(events)) > 0)
        ;
}
