/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "recorder/memory-limit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>

#include "config/config.h"
#include "util/file.h"
#include "util/log.h"
#include "util/macro.h"
#include "util/parse.h"

/*
 * A process that exceeds the limit of its control group gets no ENOMEM: the kernel kills it. What
 * lies on a tmpfs stays charged to the group, so the next process would be killed too. Therefore
 * everything that may grow gets a bound that fits before it grows. The rings belong to the kernel
 * and are not charged. If the kernel kills profd nevertheless, the next recorder plans with half
 * the memory.
 */

#define MIB (1ULL << 20)

enum { PATH_MAX_BYTES = 4096, HALVINGS_MAX = 4 };

#define NO_LIMIT (1ULL << 50) /* cgroup v1 writes a number above this for "no limit" */
#define BASE_BYTES                                                                                 \
    (16 * MIB) /* code, zstd buffers, and buffers of the thread that reads                         \
                * /proc */
#define LEAST_BYTES MIB
#define TABLE_BYTES (64 * MIB)
#define QUEUE_BYTES (32 * MIB)
/* TABLE_CACHE_MAX_BYTES at most, and tables of all that a usual host runs take a tenth of it. */
#define UNWIND_BYTES    (64 * MIB)
#define RINGS_SHARE     256
#define RINGS_BYTES_MIN (16 * MIB)
#define RINGS_BYTES_MAX (64ULL << 30)

typedef struct Group {
    char path[PATH_MAX_BYTES]; /* from the root of the host, without a trailing slash */
    bool is_v1;
} Group;

static bool memory_limit_holds_memory(const char *controllers, size_t n) {
    static const char name[] = "memory";

    for (size_t at = 0; at < n;) {
        size_t length = strcspn(controllers + at, ",:");

        if (length == sizeof(name) - 1 && memcmp(controllers + at, name, length) == 0)
            return true;
        at += length + 1;
    }
    return false;
}

/* Prefers the line of cgroup v1, "4:cpu,memory:/x", over that of v2,
 * "0::/system.slice/x.service". */
static bool memory_limit_find_group(const char *root, Group *ret) {
    char path[PATH_MAX_BYTES], text[16384], *line, *rest = text;
    const char *found = NULL;

    snprintf(path, sizeof(path), "%s/proc/self/cgroup", root);
    if (file_read_text(path, text, sizeof(text)) < 0)
        return false;
    ret->is_v1 = false;
    while ((line = strsep(&rest, "\n"))) {
        char *controllers = strchr(line, ':');
        char *group = controllers ? strchr(controllers + 1, ':') : NULL;

        if (!group)
            continue;
        if (memory_limit_holds_memory(controllers + 1, (size_t)(group - controllers - 1))) {
            found = group + 1;
            ret->is_v1 = true;
            break;
        }
        if (group == controllers + 1)
            found = group + 1;
    }
    /* A path with "/.." lies above the root of our namespace, so its files are not visible here. */
    if (!found || found[0] != '/' || strstr(found, "/.."))
        return false;
    return snprintf(ret->path, sizeof(ret->path), "%s/sys/fs/cgroup%s%s", root,
                    ret->is_v1 ? "/memory" : "",
                    strcmp(found, "/") == 0 ? "" : found) < (int)sizeof(ret->path);
}

/* "max" or an unreadable file means no limit. */
static uint64_t memory_limit_read(const char *folder, const char *name) {
    char path[PATH_MAX_BYTES + 32], text[32];
    uint64_t bytes;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return file_read_text(path, text, sizeof(text)) >= 0 && parse_u64(text, &bytes) == 0
               ? bytes
               : UINT64_MAX;
}

static uint64_t memory_limit_of(const Group *group) {
    if (group->is_v1)
        return memory_limit_read(group->path, "memory.limit_in_bytes");
    return MIN(memory_limit_read(group->path, "memory.max"),
               memory_limit_read(group->path, "memory.high"));
}

/* Finds the line "oom_kill 2" in memory.events. */
static uint64_t memory_limit_kills_of(const Group *group) {
    char path[PATH_MAX_BYTES + 32], text[1024];
    const char *word;
    unsigned long long kills;

    snprintf(path, sizeof(path), "%s/%s", group->path,
             group->is_v1 ? "memory.oom_control" : "memory.events");
    if (file_read_text(path, text, sizeof(text)) < 0)
        return 0;
    word = strstr(text, "oom_kill ");
    return word && sscanf(word, "oom_kill %llu", &kills) == 1 ? kills : 0;
}

static size_t memory_limit_top(const char *root) {
    return strlen(root) + strlen("/sys/fs/cgroup");
}

/* Of the group and all around it; uses up the path of the group. */
static uint64_t memory_limit_tightest(Group *group, const char *root) {
    uint64_t limit = UINT64_MAX;

    while (strlen(group->path) >= memory_limit_top(root)) {
        limit = MIN(limit, memory_limit_of(group));
        *strrchr(group->path, '/') = '\0';
    }
    return limit < NO_LIMIT ? limit : 0;
}

uint64_t memory_limit(const char *root, uint64_t *ret_kills) {
    Group group;

    if (!memory_limit_find_group(root, &group))
        return 0;
    if (ret_kills)
        *ret_kills = memory_limit_kills_of(&group);
    return memory_limit_tightest(&group, root);
}

static uint64_t memory_limit_physical(const char *root) {
    char path[PATH_MAX_BYTES], text[4096];
    const char *line;
    struct sysinfo info;
    unsigned long long kib;

    /* The call is quicker than the file, and no file is read before events begin. */
    if (!root[0])
        return sysinfo(&info) < 0 ? 0 : (uint64_t)info.totalram * info.mem_unit;
    snprintf(path, sizeof(path), "%s/proc/meminfo", root);
    if (file_read_text(path, text, sizeof(text)) < 0)
        return 0;
    line = strstr(text, "MemTotal:");
    return line && sscanf(line, "MemTotal: %llu kB", &kib) == 1 && kib < NO_LIMIT / 1024
               ? kib * 1024
               : 0;
}

/* MemoryMax= of our unit says how much profd may take of the host, not how large the host is. */
uint64_t memory_of_host(const char *root) {
    uint64_t physical = memory_limit_physical(root), limit = 0;
    Group group;

    if (memory_limit_find_group(root, &group)) {
        size_t top = memory_limit_top(root) + (group.is_v1 ? strlen("/memory") : 0);

        if (strlen(group.path) > top)
            *strrchr(group.path, '/') = '\0';
        limit = memory_limit_tightest(&group, root);
    }
    return physical == 0 || limit == 0 ? MAX(physical, limit) : MIN(physical, limit);
}

uint64_t memory_for_rings(uint64_t amount, uint64_t host_bytes) {
    uint64_t usual = MAX(host_bytes / RINGS_SHARE, RINGS_BYTES_MIN);
    uint64_t bytes = config_amount(amount, host_bytes, usual);

    return MIN(bytes, RINGS_BYTES_MAX);
}

MemoryPlan memory_plan(uint64_t limit_bytes, uint64_t kills, uint64_t store_bytes) {
    uint64_t rest = limit_bytes > 2 * BASE_BYTES ? limit_bytes - BASE_BYTES : limit_bytes / 2;
    /* Two process tables, the queue, half a share for unwind tables, and a store. */
    uint64_t half_shares = store_bytes > 0 ? 9 : 7, share;
    MemoryPlan plan = {.limit_bytes = limit_bytes};

    if (limit_bytes == 0)
        return plan;
    share = (rest >> MIN(kills, (uint64_t)HALVINGS_MAX)) / half_shares * 2;
    share = MAX(share, LEAST_BYTES);
    plan.table_bytes = MIN(share, TABLE_BYTES);
    /* A queue may exceed its bound by a quarter for records that samples depend on. */
    plan.queue_bytes = MAX(share / 5 * 4, LEAST_BYTES);
    plan.unwind_bytes = MIN(share / 2, UNWIND_BYTES);
    plan.store_bytes = store_bytes > 0 ? MIN(share, store_bytes) : 0;
    plan.is_small = kills > 0 || plan.table_bytes < TABLE_BYTES / 2 ||
                    plan.queue_bytes < QUEUE_BYTES / 2 || plan.store_bytes < store_bytes / 2;
    return plan;
}

MemoryPlan memory_plan_here(uint64_t store_bytes) {
    uint64_t kills = 0, limit = memory_limit("", &kills);
    MemoryPlan plan = memory_plan(limit, kills, store_bytes);
    char killed[80] = "";

    if (kills > 0)
        snprintf(killed, sizeof(killed), " and the kernel killed %" PRIu64 " processes for it",
                 kills);
    if (plan.is_small)
        log_warning(0,
                    "The control group allows %" PRIu64 " MiB of memory%s, so at most %" PRIu64
                    " MiB hold the table of processes, %" PRIu64
                    " MiB the queue to the disk and %" PRIu64
                    " MiB the unwind tables, raise MemoryMax= and MemoryHigh=",
                    limit >> 20, killed, plan.table_bytes >> 20, plan.queue_bytes >> 20,
                    plan.unwind_bytes >> 20);
    return plan;
}
