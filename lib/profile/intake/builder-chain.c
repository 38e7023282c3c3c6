/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "profile/intake/builder-private.h"

/*
 * From the call chain of a sample to a node of the tree. Most samples have a chain that was there
 * before, so the stack is kept under a hash of all that it depends on: the bytes of the chain, the
 * instruction, and the states of the two address spaces. The hash has a secret seed and 128 bits,
 * so it stands for the bytes.
 *
 * The innermost frame is the instruction of the sample, as in perf's tables: where the chain begins
 * in another context (a chain of user space alone, sampled in the kernel) it is put before it.
 */

enum {
    FRAMES_MAX_IN_CHAIN = CHAIN_WORDS_MAX,
    CHAIN_SLOTS_MIN = 1 << 12,
    CHAIN_SLOTS_MAX = 1 << 18,
};

typedef struct ChainHash {
    uint64_t hash, check;
} ChainHash;

/* A stack that is being made, innermost frame first. */
typedef struct ChainWalk {
    ProfileBuilder *builder;
    const PdSample *sample;
    FrameSpace space;
    bool is_first; /* the next address is where its context was left, not a return address */
    uint32_t *frames;
    uint32_t n;
} ChainWalk;

int builder_chains_new(ProfileBuilder *builder) {
    builder->chain_frames = malloc(FRAMES_MAX_IN_CHAIN * sizeof(*builder->chain_frames));
    builder->chain_slots = calloc(CHAIN_SLOTS_MIN, sizeof(*builder->chain_slots));
    builder->n_chain_slots = CHAIN_SLOTS_MIN;
    return builder->chain_frames && builder->chain_slots ? 0 : -ENOMEM;
}

void builder_chains_done(ProfileBuilder *builder) {
    free(builder->chain_frames);
    free(builder->chain_slots);
}

void builder_chains_forget(ProfileBuilder *builder) {
    memset(builder->chain_slots, 0, builder->n_chain_slots * sizeof(*builder->chain_slots));
    builder->n_chain_fills = 0;
}

static bool builder_chain_cpumode_of(uint64_t context, unsigned *ret) {
    switch (context) {
    case CONTEXT_HV:
        *ret = PD_MISC_HYPERVISOR;
        return true;
    case CONTEXT_KERNEL:
        *ret = PD_MISC_KERNEL;
        return true;
    case CONTEXT_USER:
        *ret = PD_MISC_USER;
        return true;
    case CONTEXT_GUEST:
    case CONTEXT_GUEST_USER:
        *ret = PD_MISC_GUEST_USER;
        return true;
    case CONTEXT_GUEST_KERNEL:
        *ret = PD_MISC_GUEST_KERNEL;
        return true;
    default:
        return false;
    }
}

static int builder_chain_push(ChainWalk *walk, uint64_t address) {
    int r;

    if (walk->n == FRAMES_MAX_IN_CHAIN)
        return 0;
    r = builder_frame(walk->builder, &walk->space, address,
                      !walk->is_first && !walk->builder->has_exact, &walk->frames[walk->n]);
    if (r < 0)
        return r;
    walk->is_first = false;
    walk->n++;
    return 0;
}

static void builder_chain_enter(ChainWalk *walk, unsigned cpumode) {
    walk->space = builder_space(walk->builder, walk->sample, cpumode);
    walk->is_first = true;
}

/* The context of the first address of a chain. */
static unsigned builder_chain_begins_in(const PdCallchain *chain, unsigned cpumode) {
    for (uint64_t i = 0; i < chain->n && pd_u64_at(chain, i) >= CONTEXT_MAX; i++)
        (void)builder_chain_cpumode_of(pd_u64_at(chain, i), &cpumode);
    return cpumode;
}

/* Like perf, a chain with an unknown context is no chain at all. */
static bool builder_chain_is_sound(const PdCallchain *chain) {
    unsigned cpumode;

    for (uint64_t i = 0; i < chain->n; i++) {
        uint64_t word = pd_u64_at(chain, i);

        if (word >= CONTEXT_MAX && !builder_chain_cpumode_of(word, &cpumode))
            return false;
    }
    return true;
}

static int builder_chain_walk(ChainWalk *walk, const PdCallchain *chain, unsigned cpumode) {
    bool replaces = builder_chain_begins_in(chain, cpumode) == cpumode;
    int r = 0;

    builder_chain_enter(walk, cpumode);
    if (walk->sample->sample_type & PD_SAMPLE_IP)
        r = builder_chain_push(walk, walk->sample->ip);
    else
        replaces = false;
    if (r < 0 || !builder_chain_is_sound(chain))
        return r;
    for (uint64_t i = 0; r >= 0 && i < chain->n; i++) {
        uint64_t word = pd_u64_at(chain, i);

        if (word >= CONTEXT_MAX) {
            (void)builder_chain_cpumode_of(word, &cpumode);
            builder_chain_enter(walk, cpumode);
        } else if (replaces) {
            replaces = false;
            walk->is_first = false;
        } else
            r = builder_chain_push(walk, word);
    }
    return r;
}

static int builder_chain_intern(ChainWalk *walk, uint32_t *ret) {
    StackTree *tree = walk->builder->profile->stacks;
    uint32_t node = STACK_ROOT;

    for (uint32_t i = walk->n; i > 0; i--) {
        int r = stack_tree_add(tree, node, walk->frames[i - 1], &node);

        if (r < 0)
            return r;
    }
    *ret = node;
    return 0;
}

static uint64_t builder_chain_mix(uint64_t a, uint64_t b) {
    unsigned __int128 product = (unsigned __int128)a * b;

    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static ChainHash builder_chain_hash(ProfileBuilder *builder, const PdSample *sample,
                                    unsigned cpumode) {
    FrameSpace user = builder_space(builder, sample, PD_MISC_USER);
    const ProcessMaps *kernel = process_table_kernel_maps(builder->table);
    uint64_t a = builder->seed, b = hash_u64(a, 1), i, n = sample->callchain.n;
    const uint8_t *p = sample->callchain.data;
    ChainHash h = {.hash = hash_u64(a, sample->ip),
                   .check = hash_u64(b, n << 4 | builder->has_exact << 3 | cpumode)};

    h.hash = builder_chain_mix(h.hash ^ user.version, a ^ h.check);
    h.check = builder_chain_mix(h.check ^ (kernel ? maps_version(kernel) : 0), b ^ sample->ip);
    for (i = 0; i + 2 <= n; i += 2) {
        uint64_t v = load_u64(p + i * 8, false), w = load_u64(p + i * 8 + 8, false);

        h.hash = builder_chain_mix(h.hash ^ v, a ^ w);
        h.check = builder_chain_mix(h.check ^ w, b ^ v);
    }
    if (i < n) {
        h.hash = builder_chain_mix(h.hash ^ load_u64(p + i * 8, false), a);
        h.check = builder_chain_mix(h.check ^ load_u64(p + i * 8, false), b);
    }
    h.hash |= 1;
    return h;
}

static ChainSlot *builder_chain_slot(ChainSlot *slots, size_t n, ChainHash h) {
    return &slots[(h.hash >> 1) & (n - 1)];
}

/* Without memory it stays as it is. */
static void builder_chain_grow(ProfileBuilder *builder) {
    size_t n = builder->n_chain_slots * 2;
    ChainSlot *slots = n <= CHAIN_SLOTS_MAX ? calloc(n, sizeof(*slots)) : NULL;

    builder->n_chain_fills = 0;
    if (!slots)
        return;
    for (size_t i = 0; i < builder->n_chain_slots; i++) {
        ChainSlot *from = &builder->chain_slots[i];

        *builder_chain_slot(slots, n, (ChainHash){.hash = from->hash}) = *from;
    }
    free(builder->chain_slots);
    builder->chain_slots = slots;
    builder->n_chain_slots = n;
}

int builder_stack(ProfileBuilder *builder, const PdRecord *record, const PdSample *sample,
                  uint32_t *ret) {
    unsigned cpumode = record->misc & PD_MISC_CPUMODE_MASK;
    ChainHash h = builder_chain_hash(builder, sample, cpumode);
    ChainSlot *slot = builder_chain_slot(builder->chain_slots, builder->n_chain_slots, h);
    ChainWalk walk = {.builder = builder, .sample = sample, .frames = builder->chain_frames};
    int r;

    if (slot->hash == h.hash && slot->check == h.check) {
        *ret = slot->stack;
        return 0;
    }
    r = builder_chain_walk(&walk, &sample->callchain, cpumode);
    if (r >= 0)
        r = builder_chain_intern(&walk, ret);
    if (r < 0)
        return r;
    if (++builder->n_chain_fills > builder->n_chain_slots / 2) {
        builder_chain_grow(builder);
        slot = builder_chain_slot(builder->chain_slots, builder->n_chain_slots, h);
    }
    *slot = (ChainSlot){.hash = h.hash, .check = h.check, .stack = *ret};
    return 0;
}
