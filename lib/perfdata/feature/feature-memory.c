/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/feature/environment-feature.h"

#include <errno.h>
#include <inttypes.h>

#include "util/text.h"

/*
 * The physical memory map: for each node a bitmap of its memory blocks.
 */

enum {
    MEM_TOPOLOGY_VERSION = 1,
    WORD_BITS = 64,
    BITS_A_BUDGET_ITEM = 16, /* a bit may print as ten characters */
};

/* The size occurs twice in a row: as the node's, and as that of the following bitmap. */
static void feature_memory_code_mem_node(Codec *c, PdMemNode *n) {
    uint64_t size = n->n_bits;
    size_t words = (size_t)(n->n_bits / WORD_BITS + (n->n_bits % WORD_BITS != 0));

    codec_u64(c, &n->node);
    codec_u64(c, &size);
    codec_u64(c, &n->n_bits);
    if (c->mode == CODEC_READ) {
        if (size != n->n_bits || n->n_bits / 8 > cursor_left(&c->in))
            codec_fail(c, -EBADMSG);
        codec_spend(c, (size_t)(n->n_bits / BITS_A_BUDGET_ITEM));
        words = (size_t)(n->n_bits / WORD_BITS + (n->n_bits % WORD_BITS != 0));
    }
    codec_u64s(c, &n->bits, &words);
}

void code_mem_topology(Codec *c, PdEnvironment *env) {
    if (c->mode == CODEC_READ)
        env->mem_version = MEM_TOPOLOGY_VERSION;
    codec_u64_is(c, MEM_TOPOLOGY_VERSION);
    codec_u64(c, &env->mem_block_size);
    codec_count_u64(c, &env->n_mem_nodes);
    for (size_t i = codec_begin(c, &env->n_mem_nodes, &env->mem_nodes, 3 * sizeof(uint64_t));
         codec_next(c, i, &env->n_mem_nodes, &env->mem_nodes); i++)
        feature_memory_code_mem_node(c, &env->mem_nodes[i]);
}

static bool feature_memory_has_bit(const PdMemNode *n, uint64_t bit) {
    return bit < n->n_bits && (n->bits[bit / WORD_BITS] >> bit % WORD_BITS & 1);
}

/* "0-7,32-39" */
static void feature_memory_put_ranges(Buffer *out, const PdMemNode *n) {
    bool first = true;

    for (uint64_t i = 0; i < n->n_bits; i++) {
        uint64_t from = i;

        if (!feature_memory_has_bit(n, i))
            continue;
        while (feature_memory_has_bit(n, i + 1))
            i++;
        text_puts(out, first ? "" : ",");
        text_u64(out, from);
        if (i > from) {
            text_putc(out, '-');
            text_u64(out, i);
        }
        first = false;
    }
}

static uint64_t feature_memory_count_bits(const PdMemNode *n) {
    uint64_t count = 0;

    for (uint64_t i = 0; i < n->n_bits; i++)
        count += feature_memory_has_bit(n, i);
    return count;
}

/* perf changes to the next unit only from twice its size. */
static void feature_memory_put_size(Buffer *out, uint64_t size) {
    static const char units[] = "BKMG";
    unsigned i = 0;

    for (; size / 1024 > 1 && i < 3; i++)
        size /= 1024;
    text_u64(out, size);
    text_putc(out, units[i]);
}

void print_mem_topology(const PdEnvironment *env, Buffer *out) {
    text_printf(out, "# memory nodes (nr %zu, block size 0x%" PRIx64 "):\n", env->n_mem_nodes,
                env->mem_block_size);
    for (size_t i = 0; i < env->n_mem_nodes; i++) {
        const PdMemNode *n = &env->mem_nodes[i];

        text_printf(out, "#  %3" PRIu64 " [", n->node);
        feature_memory_put_size(out, env->mem_block_size * feature_memory_count_bits(n));
        text_puts(out, "]: ");
        feature_memory_put_ranges(out, n);
        text_putc(out, '\n');
    }
}

void describe_mem_topology(const PdEnvironment *env, Fields *fields) {
    fields_begin_object(fields, "mem_topology");
    fields_u64(fields, "block_size", env->mem_block_size);
    for (size_t i = fields_begin_list(fields, "nodes"); fields_next(fields, i, env->n_mem_nodes);
         i++) {
        _cleanup_(buffer_done) Buffer ranges = {};

        feature_memory_put_ranges(&ranges, &env->mem_nodes[i]);
        fields_u64(fields, "node", env->mem_nodes[i].node);
        fields_bytes(fields, "blocks", buffer_bytes(&ranges));
    }
    fields_end_object(fields);
}
