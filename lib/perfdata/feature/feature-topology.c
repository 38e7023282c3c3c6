/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/feature/environment-feature.h"

#include <errno.h>
#include <inttypes.h>

#include "util/text.h"

/*
 * The structure of the machine: which CPUs share a package, a die, a core, a cache, a memory node
 * and a scheduling domain. The CPU topology was extended twice; the length of a body shows its
 * revision.
 */

enum {
    CACHE_VERSION = 1,
    PADDING_MAX = 7, /* a pipe pads bodies to 8 bytes */
};

static void feature_topology_put_each(Buffer *out, const char *label, const PdStrings *strings) {
    for (size_t i = 0; i < strings->n; i++)
        print_line(out, label, strings->items[i]);
}

/* Added after the first revision: the position of each CPU. The number of CPUs comes from another
 * feature. */
static void feature_topology_code_places(Codec *c, PdEnvironment *env) {
    if (c->mode == CODEC_READ) {
        env->n_cpu_places = env->nrcpus_available;
        if (!env->has[PD_FEATURE_NRCPUS] || env->n_cpu_places == 0)
            codec_fail(c, -EBADMSG);
    }
    codec_begin(c, &env->n_cpu_places, &env->cpu_places, 2 * sizeof(uint32_t));
    for (size_t i = 0; i < env->n_cpu_places; i++) {
        codec_u32(c, &env->cpu_places[i].core);
        codec_u32(c, &env->cpu_places[i].socket);
    }
}

void code_cpu_topology(Codec *c, PdEnvironment *env) {
    codec_strings(c, &env->core_siblings);
    codec_strings(c, &env->thread_siblings);
    if (c->mode == CODEC_READ ? cursor_left(&c->in) <= PADDING_MAX : !env->cpu_places)
        return;
    feature_topology_code_places(c, env);
    if (c->mode == CODEC_READ)
        env->has_dies = cursor_left(&c->in) > PADDING_MAX;
    if (env->has_dies) {
        codec_strings(c, &env->die_siblings);
        for (size_t i = 0; i < env->n_cpu_places; i++)
            codec_u32(c, &env->cpu_places[i].die);
    }
    if (c->mode == CODEC_CLEAR)
        env->has_dies = false;
    codec_end(c, &env->n_cpu_places, &env->cpu_places);
}

static void feature_topology_print_places(const PdEnvironment *env, bool dies, Buffer *out) {
    if (!env->cpu_places)
        text_puts(out, "# Core ID and Socket ID information is not available\n");
    for (size_t i = 0; i < env->n_cpu_places; i++) {
        const PdCpuPlace *p = &env->cpu_places[i];

        text_printf(out, "# CPU %zu: Core ID %d, ", i, (int)p->core);
        if (dies)
            text_printf(out, "Die ID %d, ", (int)p->die);
        text_printf(out, "Socket ID %d\n", (int)p->socket);
    }
}

void print_cpu_topology(const PdEnvironment *env, Buffer *out) {
    feature_topology_put_each(out, "# sibling sockets : ", &env->core_siblings);
    feature_topology_put_each(out, "# sibling dies    : ", &env->die_siblings);
    feature_topology_put_each(out, "# sibling threads : ", &env->thread_siblings);
    feature_topology_print_places(env, env->die_siblings.n > 0, out);
}

void describe_cpu_topology(const PdEnvironment *env, Fields *fields) {
    fields_begin_object(fields, "cpu_topology");
    describe_strings(fields, "sockets", &env->core_siblings);
    if (env->has_dies)
        describe_strings(fields, "dies", &env->die_siblings);
    describe_strings(fields, "cores", &env->thread_siblings);
    for (size_t i = fields_begin_list(fields, "cpus"); fields_next(fields, i, env->n_cpu_places);
         i++) {
        fields_i64(fields, "core", (int32_t)env->cpu_places[i].core);
        if (env->has_dies)
            fields_i64(fields, "die", (int32_t)env->cpu_places[i].die);
        fields_i64(fields, "socket", (int32_t)env->cpu_places[i].socket);
    }
    fields_end_object(fields);
}

void code_numa_topology(Codec *c, PdEnvironment *env) {
    for (size_t i = codec_list(c, &env->n_numa_nodes, &env->numa_nodes, 4 + 8 + 8 + 4);
         codec_next(c, i, &env->n_numa_nodes, &env->numa_nodes); i++) {
        PdNumaNode *n = &env->numa_nodes[i];

        codec_u32(c, &n->node);
        codec_u64(c, &n->mem_total_kb);
        codec_u64(c, &n->mem_free_kb);
        codec_string(c, &n->cpus);
    }
}

void print_numa_topology(const PdEnvironment *env, Buffer *out) {
    for (size_t i = 0; i < env->n_numa_nodes; i++) {
        const PdNumaNode *n = &env->numa_nodes[i];

        text_printf(out, "# node%u meminfo  : total = %" PRIu64 " kB, free = %" PRIu64 " kB\n",
                    n->node, n->mem_total_kb, n->mem_free_kb);
        text_printf(out, "# node%u cpu list : ", n->node);
        print_line(out, "", n->cpus);
    }
}

void describe_numa_topology(const PdEnvironment *env, Fields *fields) {
    for (size_t i = fields_begin_list(fields, "numa_topology");
         fields_next(fields, i, env->n_numa_nodes); i++) {
        const PdNumaNode *n = &env->numa_nodes[i];

        fields_u64(fields, "node", n->node);
        fields_u64(fields, "mem_total_kb", n->mem_total_kb);
        fields_u64(fields, "mem_free_kb", n->mem_free_kb);
        fields_str(fields, "cpus", n->cpus);
    }
}

void code_cache(Codec *c, PdEnvironment *env) {
    if (c->mode == CODEC_READ)
        env->cache_version = CACHE_VERSION;
    codec_u32_is(c, CACHE_VERSION);
    for (size_t i = codec_list(c, &env->n_caches, &env->caches, 7 * sizeof(uint32_t));
         codec_next(c, i, &env->n_caches, &env->caches); i++) {
        PdCache *cache = &env->caches[i];

        codec_u32(c, &cache->level);
        codec_u32(c, &cache->line_size);
        codec_u32(c, &cache->sets);
        codec_u32(c, &cache->ways);
        codec_string(c, &cache->type);
        codec_string(c, &cache->size);
        codec_string(c, &cache->map);
    }
}

/* Escaped and padded with spaces on the right (width > 0) or on the left. */
static void feature_topology_put_column(Buffer *out, const char *s, int width) {
    _cleanup_(buffer_done) Buffer escaped = {};
    size_t wide = (size_t)(width < 0 ? -width : width), pad;

    text_escape_str(&escaped, s);
    pad = escaped.size < wide ? wide - escaped.size : 0;
    text_printf(out, "%*s", width < 0 ? (int)pad : 0, "");
    buffer_append(out, escaped.data, escaped.size);
    text_printf(out, "%*s", width > 0 ? (int)pad : 0, "");
}

void print_cache(const PdEnvironment *env, Buffer *out) {
    text_puts(out, "# CPU cache info:\n");
    for (size_t i = 0; i < env->n_caches; i++) {
        const PdCache *cache = &env->caches[i];

        text_printf(out, "#  L%d ", (int)cache->level);
        feature_topology_put_column(out, cache->type, 15);
        text_putc(out, ' ');
        feature_topology_put_column(out, cache->size, -8);
        text_puts(out, " [");
        text_escape_str(out, cache->map);
        text_puts(out, "]\n");
    }
}

void describe_cache(const PdEnvironment *env, Fields *fields) {
    for (size_t i = fields_begin_list(fields, "cache"); fields_next(fields, i, env->n_caches);
         i++) {
        const PdCache *cache = &env->caches[i];

        fields_u64(fields, "level", cache->level);
        fields_str(fields, "type", cache->type);
        fields_str(fields, "size", cache->size);
        fields_u64(fields, "line_size", cache->line_size);
        fields_u64(fields, "sets", cache->sets);
        fields_u64(fields, "ways", cache->ways);
        fields_str(fields, "cpus", cache->map);
    }
}
