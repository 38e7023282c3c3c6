/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "process/maps.h"

#include <errno.h>

/*
 * Two levels: a directory of blocks, and blocks of up to 32 mappings. Both are reference-counted,
 * so a fork costs one increment, and the child's first mapping costs a copy of the directory and of
 * one block. A search is two short bisections. An insertion moves at most one block of memory and
 * the pointers of the directory, even if a hostile file fills a process with the maximum number of
 * mappings.
 */

enum { BLOCK_MAX = 32, BLOCK_MIN = 4 };

typedef struct Block {
    uint32_t refs;
    uint16_t n, allocated;
    ProcessMapping items[];
} Block;

struct ProcessMaps {
    uint64_t version;
    uint32_t refs;
    uint32_t n; /* number of mappings */
    uint32_t n_blocks, allocated;
    Block **blocks; /* no block is empty */
};

typedef struct Place {
    uint32_t block, item;
} Place;

static size_t maps_block_size(size_t allocated) {
    return sizeof(Block) + allocated * sizeof(ProcessMapping);
}

static Block *maps_block_new(ProcessStrings *s, size_t allocated) {
    Block *block = budget_alloc(&s->budget, maps_block_size(allocated));

    if (!block)
        return NULL;
    block->refs = 1;
    block->allocated = (uint16_t)allocated;
    return block;
}

static void maps_block_put(ProcessStrings *s, Block *block) {
    if (--block->refs > 0)
        return;
    for (size_t i = 0; i < block->n; i++)
        images_put(s, block->items[i].image);
    budget_free(&s->budget, block, maps_block_size(block->allocated));
}

ProcessMaps *maps_new(ProcessStrings *s) {
    ProcessMaps *maps = budget_alloc(&s->budget, sizeof(*maps));

    if (maps) {
        maps->refs = 1;
        maps->version = ++s->maps_version;
    }
    return maps;
}

ProcessMaps *maps_ref(ProcessMaps *maps) {
    maps->refs++;
    return maps;
}

ProcessMaps *maps_put(ProcessStrings *s, ProcessMaps *maps) {
    if (!maps || --maps->refs > 0)
        return NULL;
    for (size_t i = 0; i < maps->n_blocks; i++)
        maps_block_put(s, maps->blocks[i]);
    budget_free(&s->budget, maps->blocks, maps->allocated * sizeof(*maps->blocks));
    return budget_free(&s->budget, maps, sizeof(*maps));
}

/* Makes the directory unshared. */
static int maps_own(ProcessStrings *s, ProcessMaps **at) {
    ProcessMaps *maps = *at, *copy;

    if (maps->refs == 1)
        return 0;
    copy = maps_new(s);
    if (!copy)
        return -ENOMEM;
    if (maps->n_blocks > 0) {
        copy->blocks = budget_alloc(&s->budget, maps->n_blocks * sizeof(*copy->blocks));
        if (!copy->blocks) {
            maps_put(s, copy);
            return -ENOMEM;
        }
        copy->allocated = maps->n_blocks;
        memcpy(copy->blocks, maps->blocks, maps->n_blocks * sizeof(*copy->blocks));
    }
    copy->n = maps->n;
    copy->n_blocks = maps->n_blocks;
    for (size_t i = 0; i < copy->n_blocks; i++)
        copy->blocks[i]->refs++;
    maps->refs--;
    *at = copy;
    return 0;
}

/* Makes a block unshared, with room for one more mapping unless it is full. */
static int maps_block_own(ProcessStrings *s, ProcessMaps *maps, uint32_t i) {
    Block *block = maps->blocks[i], *copy;
    size_t allocated = block->allocated;

    if (block->n == allocated && allocated < BLOCK_MAX)
        allocated *= 2;
    if (block->refs == 1 && allocated == block->allocated)
        return 0;
    copy = maps_block_new(s, allocated);
    if (!copy)
        return -ENOMEM;
    copy->n = block->n;
    memcpy(copy->items, block->items, block->n * sizeof(*block->items));
    for (size_t k = 0; k < copy->n; k++)
        image_ref(copy->items[k].image);
    maps_block_put(s, block);
    maps->blocks[i] = copy;
    return 0;
}

/* The first mapping that ends after the address; its block is n_blocks if there is none. */
static Place maps_place_of(const ProcessMaps *maps, uint64_t address) {
    uint32_t block = 0, item = 0;

    for (uint32_t n = maps->n_blocks; n > 0;) {
        const Block *middle = maps->blocks[block + n / 2];

        if (middle->items[middle->n - 1].end <= address) {
            block += n / 2 + 1;
            n -= n / 2 + 1;
        } else
            n /= 2;
    }
    if (block == maps->n_blocks)
        return (Place){.block = block};
    for (uint32_t n = maps->blocks[block]->n; n > 0;)
        if (maps->blocks[block]->items[item + n / 2].end <= address) {
            item += n / 2 + 1;
            n -= n / 2 + 1;
        } else
            n /= 2;
    return (Place){.block = block, .item = item};
}

const ProcessMapping *maps_find(const ProcessMaps *maps, uint64_t address) {
    Place p = maps_place_of(maps, address);
    const ProcessMapping *m;

    if (p.block == maps->n_blocks)
        return NULL;
    m = &maps->blocks[p.block]->items[p.item];
    return m->start <= address ? m : NULL;
}

static int maps_add_block(ProcessStrings *s, ProcessMaps *maps, uint32_t at, Block *block) {
    if (maps->n_blocks == maps->allocated) {
        uint32_t allocated = maps->allocated ? maps->allocated * 2 : 1;
        Block **blocks =
            budget_resize(&s->budget, maps->blocks, maps->allocated * sizeof(*maps->blocks),
                          allocated * sizeof(*maps->blocks));

        if (!blocks)
            return -ENOMEM;
        maps->blocks = blocks;
        maps->allocated = allocated;
    }
    memmove(maps->blocks + at + 1, maps->blocks + at,
            (maps->n_blocks - at) * sizeof(*maps->blocks));
    maps->blocks[at] = block;
    maps->n_blocks++;
    return 0;
}

static void maps_drop_block(ProcessStrings *s, ProcessMaps *maps, uint32_t at) {
    maps->n -= maps->blocks[at]->n;
    maps_block_put(s, maps->blocks[at]);
    maps->n_blocks--;
    memmove(maps->blocks + at, maps->blocks + at + 1,
            (maps->n_blocks - at) * sizeof(*maps->blocks));
}

/* Splits a full block; `p` moves with its mapping. */
static int maps_split_block(ProcessStrings *s, ProcessMaps *maps, Place *p) {
    Block *block = maps->blocks[p->block], *upper = maps_block_new(s, BLOCK_MAX);
    uint16_t half = p->item == block->n ? block->n : block->n / 2;
    int r;

    if (!upper)
        return -ENOMEM;
    r = maps_add_block(s, maps, p->block + 1, upper);
    if (r < 0) {
        maps_block_put(s, upper);
        return r;
    }
    upper->n = block->n - half;
    memcpy(upper->items, block->items + half, upper->n * sizeof(*upper->items));
    block->n = half;
    if (p->item >= half && half < BLOCK_MAX)
        *p = (Place){.block = p->block + 1, .item = p->item - half};
    else if (half == BLOCK_MAX)
        *p = (Place){.block = p->block + 1};
    return 0;
}

static int maps_first_block(ProcessStrings *s, ProcessMaps *maps) {
    Block *block = maps_block_new(s, BLOCK_MIN);
    int r;

    if (!block)
        return -ENOMEM;
    r = maps_add_block(s, maps, 0, block);
    if (r < 0)
        maps_block_put(s, block);
    return r;
}

/* Inserts before the mapping at `p`. The maps must be unshared. */
static int maps_insert_at(ProcessStrings *s, ProcessMaps *maps, Place p,
                          const ProcessMapping *mapping) {
    Block *block;
    int r;

    if (maps->n >= PROCESS_MAPS_MAX)
        return -E2BIG;
    if (maps->n_blocks == 0) {
        r = maps_first_block(s, maps);
        if (r < 0)
            return r;
    } else if (p.item == 0 && p.block > 0)
        p = (Place){.block = p.block - 1, .item = maps->blocks[p.block - 1]->n};
    r = maps_block_own(s, maps, p.block);
    if (r >= 0 && maps->blocks[p.block]->n == BLOCK_MAX)
        r = maps_split_block(s, maps, &p);
    if (r < 0)
        return r;
    block = maps->blocks[p.block];
    memmove(block->items + p.item + 1, block->items + p.item,
            (block->n - p.item) * sizeof(*block->items));
    block->items[p.item] = *mapping;
    block->n++;
    maps->n++;
    return 0;
}

static void maps_drop_item(ProcessStrings *s, ProcessMaps *maps, Place p) {
    Block *block = maps->blocks[p.block];

    images_put(s, block->items[p.item].image);
    block->n--;
    maps->n--;
    memmove(block->items + p.item, block->items + p.item + 1,
            (block->n - p.item) * sizeof(*block->items));
}

/* Cuts a hole into the middle of a mapping. */
static int maps_punch(ProcessStrings *s, ProcessMaps *maps, Place p, uint64_t start, uint64_t end) {
    ProcessMapping *m = &maps->blocks[p.block]->items[p.item], right = *m;
    int r;

    right.pgoff += end - m->start;
    right.start = end;
    image_ref(right.image);
    m->end = start;
    r = maps_insert_at(s, maps, (Place){.block = p.block, .item = p.item + 1}, &right);
    if (r < 0)
        images_put(s, right.image);
    return r;
}

/* Unmaps a range; the maps must be unshared. */
static int maps_cut(ProcessStrings *s, ProcessMaps *maps, uint64_t start, uint64_t end) {
    Place p = maps_place_of(maps, start);

    while (p.block < maps->n_blocks) {
        Block *block = maps->blocks[p.block];
        ProcessMapping *m = &block->items[p.item];
        int r;

        if (m->start >= end)
            break;
        if (p.item == 0 && m->start >= start && block->items[block->n - 1].end <= end) {
            maps_drop_block(s, maps, p.block);
            continue;
        }
        r = maps_block_own(s, maps, p.block);
        if (r < 0)
            return r;
        m = &maps->blocks[p.block]->items[p.item];
        if (m->start < start && m->end > end)
            return maps_punch(s, maps, p, start, end);
        if (m->end > end) {
            m->pgoff += end - m->start;
            m->start = end;
            break;
        }
        if (m->start < start) {
            m->end = start;
            p.item++;
        } else
            maps_drop_item(s, maps, p);
        if (p.item == maps->blocks[p.block]->n)
            p = (Place){.block = p.block + 1};
    }
    return 0;
}

int maps_remove(ProcessStrings *s, ProcessMaps **maps, uint64_t start, uint64_t end) {
    int r = maps_own(s, maps);

    if (r < 0)
        return r;
    (*maps)->version = ++s->maps_version;
    return maps_cut(s, *maps, start, end);
}

int maps_insert(ProcessStrings *s, ProcessMaps **maps, const ProcessMapping *mapping) {
    int r = maps_remove(s, maps, mapping->start, mapping->end);

    if (r >= 0)
        r = maps_insert_at(s, *maps, maps_place_of(*maps, mapping->start), mapping);
    if (r < 0)
        images_put(s, mapping->image);
    return r;
}

uint64_t maps_version(const ProcessMaps *maps) {
    return maps->version;
}

size_t maps_count(const ProcessMaps *maps) {
    return maps->n;
}

const ProcessMapping *maps_next(const ProcessMaps *maps, size_t *at) {
    size_t block = *at / BLOCK_MAX, item = *at % BLOCK_MAX;

    if (block >= maps->n_blocks)
        return NULL;
    *at = item + 1 < maps->blocks[block]->n ? *at + 1 : (block + 1) * BLOCK_MAX;
    return &maps->blocks[block]->items[item];
}
