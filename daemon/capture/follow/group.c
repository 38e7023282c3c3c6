/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture/follow/group.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "capture/follow/group-watch.h"
#include "util/cgroup.h"
#include "util/clock.h"
#include "util/log.h"

/*
 * The control group of a session. The kernel binds an event to the group that a path named when the
 * event was opened. A service that restarts gets a new group at the same path, and events of the
 * old one never sample again. So the path is looked up when something changes around it, and once a
 * second: when the group is gone, the session's rings are drained and closed, and the session
 * waits; when another group is there than that of its events, they are opened again. The kernel
 * never uses the number of a group twice.
 */

#define LOOKUP_LATE_NS (2 * NS_PER_SECOND) /* after the previous lookup */

static int group_open_tree(Sampler *sampler) {
    _cleanup_free_ CgroupTree *tree = NULL;
    int r;

    if (sampler->groups)
        return 0;
    tree = malloc(sizeof(*tree));
    if (!tree)
        return -ENOMEM;
    r = cgroup_tree_find("", tree);
    if (r < 0)
        return r;
    sampler->groups_fd = open(tree->mount, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (sampler->groups_fd < 0)
        return -errno;
    sampler->groups = TAKE_PTR(tree);
    return 0;
}

/* Returns 0 with *ret_id 0 if it does not exist; a negative errno if this is unknown. */
static int group_look_up(const Sampler *sampler, const char *path, uint64_t *ret_id) {
    struct stat st;

    if (fstatat(sampler->groups_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0) {
        *ret_id = S_ISDIR(st.st_mode) ? st.st_ino : 0;
        return 0;
    }
    if (errno != ENOENT && errno != ENOTDIR)
        return -errno;
    *ret_id = 0;
    return 0;
}

/* On failure the path stays as it is: without one a session would sample the whole machine. */
static int group_find(Sampler *sampler, const char *cgroup, const char **ret_path,
                      uint64_t *ret_id) {
    const char *below;
    uint64_t id = 0;
    int r = group_open_tree(sampler);

    if (r < 0)
        return r;
    below = cgroup_below_mount(sampler->groups, cgroup);
    if (below)
        r = group_look_up(sampler, below, &id);
    if (r == 0 && id == 0) {
        below = cgroup;
        r = group_look_up(sampler, cgroup, &id);
    }
    if (r < 0)
        return r;
    *ret_path = below;
    *ret_id = id;
    return 0;
}

bool sampler_group_exists(Sampler *sampler, const char *cgroup) {
    const char *path;
    uint64_t id;

    return group_find(sampler, cgroup, &path, &id) < 0 || id != 0;
}

static void group_log_change(const SamplerSession *session, uint64_t before) {
    const char *name = session->config.name, *cgroup = session->config.cgroup;

    if (session->group.id == 0)
        log_notice("Session '%s' waits for control group '%s', which does not exist", name, cgroup);
    else if (before == 0)
        log_notice("Session '%s' samples control group '%s', which exists now", name, cgroup);
    else
        log_notice("Session '%s' samples control group '%s' anew, which was replaced", name,
                   cgroup);
}

void group_begin(SamplerSession *session) {
    const char *cgroup = session->config.cgroup;
    SessionGroup *group = &session->group;

    *group = (SessionGroup){.path = cgroup};
    if (!cgroup[0] || sampler_follows_processes(session->sampler))
        return;
    group->is_followed = group_find(session->sampler, cgroup, &group->path, &group->id) == 0;
    if (group->is_followed)
        group_watch(session);
    group->seen_ns = clock_monotonic_ns();
    if (!session_lacks_group(session))
        return;
    group->gap_from_ns = group->seen_ns;
    group_log_change(session, 0);
}

/* With a watch the end of a group is noticed at once, unless the lookup was late. */
static uint64_t group_gone_since(const SessionGroup *group, uint64_t now_ns) {
    return group->watch > 0 && now_ns - group->seen_ns < LOOKUP_LATE_NS ? now_ns : group->seen_ns;
}

/* Returns true if its events are not for the group that is there now. */
static bool group_refresh(SamplerSession *session) {
    SessionGroup *group = &session->group;
    uint64_t now_ns = clock_monotonic_ns(), before = group->id, id;

    if (!group->is_followed)
        return false;
    /* Watch first, so that no change is missed in between. */
    group_watch(session);
    if (group_find(session->sampler, session->config.cgroup, &group->path, &id) < 0)
        return false;
    if (id == before) {
        group->seen_ns = now_ns;
        return false;
    }
    if (before != 0) {
        group->gap_from_ns = group_gone_since(group, now_ns);
        group->gap_to_ns = 0;
    }
    group->id = id;
    group->seen_ns = now_ns;
    session->n_retries = 0;
    for (size_t i = 0; i < session->rings.n; i++)
        session->rings.rings[i]->is_gone = true;
    group_log_change(session, before);
    return true;
}

bool groups_refresh(Sampler *sampler) {
    bool changed = false;

    group_watch_read(sampler);
    for (SamplerSession *s = sampler->sessions; s; s = s->next)
        changed |= group_refresh(s);
    return changed;
}

void group_opened(SamplerSession *session) {
    SessionGroup *group = &session->group;

    if (group->gap_from_ns > 0 && group->gap_to_ns == 0 && session->rings.n > 0)
        group->gap_to_ns = clock_monotonic_ns();
}

bool sampler_is_waiting(const SamplerSession *session) {
    return session_lacks_group(session);
}

bool sampler_take_group_gap(SamplerSession *session, uint64_t *ret_from_ns, uint64_t *ret_to_ns) {
    SessionGroup *group = &session->group;

    if (group->gap_from_ns == 0)
        return false;
    *ret_from_ns = group->gap_from_ns;
    *ret_to_ns = group->gap_to_ns ?: clock_monotonic_ns();
    if (group->gap_to_ns > 0)
        group->gap_from_ns = group->gap_to_ns = 0;
    return true;
}
