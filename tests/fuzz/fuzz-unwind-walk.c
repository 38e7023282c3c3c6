/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fuzz.h"

#include <elf.h>
#include <linux/perf_event.h>

#include "unwind/unwind.h"
#include "util/macro.h"

/*
 * A table, registers and a stack that all lie. The input begins with a Head; the image of a table,
 * the registers and the stack follow. Whatever they say, each caller in the chain must be code.
 */

typedef struct Head {
    uint16_t image_size;
    uint8_t is_arm, abi;
    uint32_t unused;
} Head;

enum { CODE = 0x400000, CODE_SIZE = 0x100000 };

typedef struct Scene {
    UnwindTable table;
    bool has_table;
} Scene;

static void find(void *userdata, uint64_t address, UnwindMapping *ret) {
    const Scene *scene = userdata;
    uint64_t i = address / CODE_SIZE - CODE / CODE_SIZE;

    if (i > 3)
        return;
    *ret = (UnwindMapping){.start = address / CODE_SIZE * CODE_SIZE,
                           .end = (address / CODE_SIZE + 1) * CODE_SIZE,
                           .code = (UnwindCode)(i + UNWIND_CODE_TABLE),
                           .table = scene->has_table ? &scene->table : NULL,
                           .bias = CODE - 0x1000};
}

static bool is_code(Scene *scene, uint64_t address) {
    UnwindMapping mapping = {};

    find(scene, address, &mapping);
    return mapping.code != UNWIND_CODE_NONE;
}

static void walk(const UnwindSample *sample, Scene *scene, UnwindCache *cache, UnwindChain *chain) {
    UnwindSpace space = {.find = find, .userdata = scene, .version = 1};

    if (unwind_walk(sample, &space, cache, chain) >= UNWIND_VERDICTS ||
        chain->n > UNWIND_FRAMES_MAX)
        abort();
    for (unsigned i = 1; i < chain->n; i++)
        if (!is_code(scene, chain->addresses[i]) && !is_code(scene, chain->addresses[i] - 1))
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static UnwindCache cache;
    Cursor c = cursor_of(data, size, false);
    Head head = {};
    const uint8_t *bytes = cursor_take(&c, sizeof(head));
    _cleanup_free_ uint8_t *image = NULL;
    UnwindChain cold, warm;
    Scene scene = {};
    UnwindSample sample;
    Bytes table;

    if (bytes)
        memcpy(&head, bytes, sizeof(head));
    table = cursor_bytes(&c, MIN(head.image_size, cursor_left(&c)));
    /* Aligned, and of its very size. */
    image = malloc(table.size ? table.size : 1);
    if (!image)
        return 0;
    if (table.size > 0)
        memcpy(image, table.data, table.size);
    scene.has_table =
        unwind_table_open((Bytes){.data = image, .size = table.size}, &scene.table) == 0;
    sample = (UnwindSample){.machine = head.is_arm & 1 ? EM_AARCH64 : EM_X86_64,
                            .abi = head.abi & 3,
                            .mask = head.is_arm & 1 ? 0x1ffffffffULL : 0xff01ffULL};
    sample.registers =
        cursor_bytes(&c, MIN(8U * (unsigned)__builtin_popcountll(sample.mask), cursor_left(&c)));
    sample.stack = cursor_bytes(&c, cursor_left(&c));
    memset(&cache, 0, sizeof(cache));
    walk(&sample, &scene, &cache, &cold);
    walk(&sample, &scene, &cache, &warm);
    if (cold.n != warm.n ||
        memcmp(cold.addresses, warm.addresses, cold.n * sizeof(cold.addresses[0])) != 0)
        abort();
    return 0;
}
