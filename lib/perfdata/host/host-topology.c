/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/host/host-read.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "util/array.h"

/*
 * The structure of this host, read CPU by CPU and node by node from /sys/devices/system, in the
 * same order as perf, so that a host always gives the same bytes.
 */

#define CPU  "/sys/devices/system/cpu"
#define NODE "/sys/devices/system/node"

enum {
    CACHE_VERSION = 1,
    CACHE_INDEX_MAX = 8, /* per CPU */
    MEM_VERSION = 1,
    MEM_BLOCKS_MAX = 1 << 22,
};

int host_nrcpus(const Host *host, PdEnvironment *env) {
    HostIds present, online;
    int r = host_ids(host, &present, CPU "/present");

    if (r == 0)
        r = host_ids(host, &online, CPU "/online");
    if (r < 0)
        return r;
    if (present.n == 0 || online.n == 0)
        return -ENODATA;
    env->nrcpus_available = present.end;
    env->nrcpus_online = online.n;
    return 0;
}

/* Adds s unless the list has it; takes ownership of it. */
static int host_topology_add_once(PdStrings *list, char *s) {
    char **item;

    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->items[i], s) == 0) {
            free(s);
            return 0;
        }
    item = array_grow(&list->items, &list->n);
    if (!item) {
        free(s);
        return -ENOMEM;
    }
    *item = s;
    return 0;
}

/* A CPU's list of siblings, under its present name or its name before Linux 5.3. */
static int host_topology_add_siblings(const Host *host, PdStrings *list, uint32_t cpu,
                                      const char *name, const char *old_name) {
    char *s = NULL;
    int r = host_string(host, &s, CPU "/cpu%u/topology/%s", cpu, name);

    if (r < 0 && old_name)
        r = host_string(host, &s, CPU "/cpu%u/topology/%s", cpu, old_name);
    if (r < 0)
        return r == -ENOMEM ? r : 0;
    return host_topology_add_once(list, s);
}

static int host_topology_add_cpu(const Host *host, PdEnvironment *env, uint32_t cpu) {
    int r = host_topology_add_siblings(host, &env->core_siblings, cpu, "package_cpus_list",
                                       "core_siblings_list");

    if (r == 0 && env->has_dies)
        r = host_topology_add_siblings(host, &env->die_siblings, cpu, "die_cpus_list", NULL);
    if (r == 0)
        r = host_topology_add_siblings(host, &env->thread_siblings, cpu, "core_cpus_list",
                                       "thread_siblings_list");
    return r;
}

/* Unknown values are -1; for an offline CPU all are unknown. */
static void host_topology_read_place(const Host *host, PdCpuPlace *place, uint32_t cpu) {
    *place = (PdCpuPlace){.core = UINT32_MAX, .socket = UINT32_MAX, .die = UINT32_MAX};
    (void)host_u32(host, &place->core, CPU "/cpu%u/topology/core_id", cpu);
    (void)host_u32(host, &place->socket, CPU "/cpu%u/topology/physical_package_id", cpu);
    (void)host_u32(host, &place->die, CPU "/cpu%u/topology/die_id", cpu);
}

/* perf looks for dies only where a package may have several. */
static bool host_topology_knows_dies(const Host *host) {
    char text[HOST_TEXT_SIZE];

    return (strncmp(host->arch, "x86_64", 6) == 0 || strncmp(host->arch, "s390x", 5) == 0) &&
           host_text(host, text, CPU "/cpu0/topology/die_cpus_list") == 0;
}

/* Needs NRCPUS, which is the number of positions. */
int host_cpu_topology(const Host *host, PdEnvironment *env) {
    HostIds online;
    int r = host_ids(host, &online, CPU "/online");

    if (!env->has[PD_FEATURE_NRCPUS])
        return -ENODATA;
    env->has_dies = host_topology_knows_dies(host);
    for (uint32_t cpu = 0; r == 0 && cpu < MIN(online.end, env->nrcpus_available); cpu++)
        if (host_ids_has(&online, cpu))
            r = host_topology_add_cpu(host, env, cpu);
    if (r < 0)
        return r;
    if (env->core_siblings.n == 0 && env->thread_siblings.n == 0)
        return -ENODATA;
    env->has_dies = env->die_siblings.n > 0;
    env->cpu_places = calloc(env->nrcpus_available, sizeof(*env->cpu_places));
    if (!env->cpu_places)
        return -ENOMEM;
    env->n_cpu_places = env->nrcpus_available;
    for (uint32_t cpu = 0; cpu < env->n_cpu_places; cpu++)
        host_topology_read_place(host, &env->cpu_places[cpu], cpu);
    return 0;
}

static void host_topology_done_cache(PdCache *c) {
    free(c->type);
    free(c->size);
    free(c->map);
}

static int host_topology_read_cache(const Host *host, PdCache *ret, uint32_t cpu, unsigned index) {
    static const char path[] = CPU "/cpu%u/cache/index%u/%s";
    _cleanup_(host_topology_done_cache) PdCache c = {};
    int r = host_u32(host, &c.level, path, cpu, index, "level");

    if (r == 0)
        r = host_u32(host, &c.line_size, path, cpu, index, "coherency_line_size");
    if (r == 0)
        r = host_u32(host, &c.sets, path, cpu, index, "number_of_sets");
    if (r == 0)
        r = host_u32(host, &c.ways, path, cpu, index, "ways_of_associativity");
    if (r == 0)
        r = host_string(host, &c.type, path, cpu, index, "type");
    if (r == 0)
        r = host_string(host, &c.size, path, cpu, index, "size");
    if (r == 0)
        r = host_string(host, &c.map, path, cpu, index, "shared_cpu_list");
    if (r < 0)
        return r;
    *ret = c;
    c = (PdCache){};
    return 0;
}

static bool host_topology_same_cache(const PdCache *a, const PdCache *b) {
    return a->level == b->level && a->line_size == b->line_size && a->sets == b->sets &&
           a->ways == b->ways && strcmp(a->map, b->map) == 0 && strcmp(a->type, b->type) == 0 &&
           strcmp(a->size, b->size) == 0;
}

/* A cache that CPUs share appears at each of them. */
static int host_topology_add_cache(PdEnvironment *env, PdCache *cache) {
    PdCache *item;

    for (size_t i = 0; i < env->n_caches; i++)
        if (host_topology_same_cache(&env->caches[i], cache)) {
            host_topology_done_cache(cache);
            return 0;
        }
    item = array_grow(&env->caches, &env->n_caches);
    if (!item) {
        host_topology_done_cache(cache);
        return -ENOMEM;
    }
    *item = *cache;
    return 0;
}

/* By level, then in the order found; there are few levels, so one pass for each. */
static int host_topology_sort_caches(PdEnvironment *env) {
    PdCache *sorted = calloc(MAX(env->n_caches, (size_t)1), sizeof(*sorted));
    size_t n = 0;

    if (!sorted)
        return -ENOMEM;
    for (uint64_t level = 0, next; n < env->n_caches; level = next) {
        next = UINT64_MAX;
        for (size_t i = 0; i < env->n_caches; i++)
            if (env->caches[i].level == level)
                sorted[n++] = env->caches[i];
            else if (env->caches[i].level > level)
                next = MIN(next, (uint64_t)env->caches[i].level);
    }
    free(env->caches);
    env->caches = sorted;
    return 0;
}

int host_cache(const Host *host, PdEnvironment *env) {
    HostIds possible;
    int r = host_ids(host, &possible, CPU "/possible");

    if (r < 0)
        return r;
    for (uint32_t cpu = 0; cpu < possible.end; cpu++)
        for (unsigned index = 0; index < CACHE_INDEX_MAX; index++) {
            PdCache cache;

            r = host_topology_read_cache(host, &cache, cpu, index);
            if (r == -ENOENT || r == -ENOTDIR)
                break;
            if (r == 0)
                r = host_topology_add_cache(env, &cache);
            if (r == -ENOMEM)
                return r;
        }
    env->cache_version = CACHE_VERSION;
    return host_topology_sort_caches(env);
}

static int host_topology_add_numa_node(const Host *host, PdEnvironment *env, uint32_t node) {
    PdNumaNode *n = array_grow(&env->numa_nodes, &env->n_numa_nodes);
    char path[64], key[64], text[HOST_TEXT_SIZE];
    int r;

    if (!n)
        return -ENOMEM;
    n->node = node;
    (void)snprintf(path, sizeof(path), NODE "/node%u/meminfo", node);
    (void)snprintf(key, sizeof(key), "Node %u MemTotal", node);
    r = host_field(host, path, key, text);
    if (r == 0)
        n->mem_total_kb = strtoull(text, NULL, 10);
    (void)snprintf(key, sizeof(key), "Node %u MemFree", node);
    if (r == 0)
        r = host_field(host, path, key, text);
    if (r == 0)
        n->mem_free_kb = strtoull(text, NULL, 10);
    if (r == 0)
        r = host_string(host, &n->cpus, NODE "/node%u/cpulist", node);
    return r;
}

int host_numa_topology(const Host *host, PdEnvironment *env) {
    HostIds online;
    int r = host_ids(host, &online, NODE "/online");

    for (uint32_t node = 0; r == 0 && node < online.end; node++)
        if (host_ids_has(&online, node))
            r = host_topology_add_numa_node(host, env, node);
    return r;
}

static int host_topology_add_block(PdMemNode *n, size_t *room, uint32_t block) {
    uint64_t *bits;
    size_t want;

    if (block >= MEM_BLOCKS_MAX)
        return -ERANGE;
    want = (block / 64 + 1) * 2;
    if (block / 64 >= *room) {
        bits = realloc(n->bits, want * sizeof(*bits));
        if (!bits)
            return -ENOMEM;
        memset(bits + *room, 0, (want - *room) * sizeof(*bits));
        n->bits = bits;
        *room = want;
    }
    n->bits[block / 64] |= 1ULL << block % 64;
    n->n_bits = MAX(n->n_bits, (uint64_t)block + 1);
    return 0;
}

/* A node without memory blocks still has a bitmap with one unset bit. */
static int host_topology_add_mem_node(const Host *host, PdEnvironment *env, uint32_t node) {
    _cleanup_closedir_ DIR *dir = host_folder(host, NODE "/node%u", node);
    PdMemNode *n = array_grow(&env->mem_nodes, &env->n_mem_nodes);
    size_t left = MEM_BLOCKS_MAX, room = 1;
    const char *name;

    if (!n)
        return -ENOMEM;
    if (!dir)
        return -errno;
    n->node = node;
    n->n_bits = 1;
    n->bits = calloc(1, sizeof(*n->bits));
    if (!n->bits)
        return -ENOMEM;
    while ((name = host_next_name(dir, &left))) {
        uint32_t block;
        int r =
            host_numbered(name, "memory", &block) ? host_topology_add_block(n, &room, block) : 0;

        if (r < 0)
            return r;
    }
    return 0;
}

int host_mem_topology(const Host *host, PdEnvironment *env) {
    _cleanup_closedir_ DIR *dir = host_folder(host, NODE);
    size_t left = HOST_NAMES_MAX;
    HostIds nodes = {};
    const char *name;
    int r;

    if (!dir)
        return -errno;
    r = host_u64(host, &env->mem_block_size, 16, "/sys/devices/system/memory/block_size_bytes");
    while (r == 0 && (name = host_next_name(dir, &left))) {
        uint32_t node;

        if (!host_numbered(name, "node", &node) || node >= HOST_IDS_MAX)
            continue;
        nodes.bits[node / 64] |= 1ULL << node % 64;
        nodes.end = MAX(nodes.end, node + 1);
    }
    for (uint32_t node = 0; r == 0 && node < nodes.end; node++)
        if (host_ids_has(&nodes, node))
            r = host_topology_add_mem_node(host, env, node);
    env->mem_version = MEM_VERSION;
    return r;
}
