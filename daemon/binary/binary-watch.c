/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "binary/binary-watch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "perfdata/record/sample-place.h"
#include "util/clock.h"
#include "util/hash.h"
#include "util/macro.h"

/*
 * A table of pages that were looked at keeps this cheap: a page of a process is looked up again
 * only after the mappings of some process have changed, or another page took its place. The address
 * of each sample is looked up, and the callers of every fourth, which costs a fraction and still
 * finds each file that matters. A file is asked for again from time to time, which notes that it is
 * still used.
 */

enum { SEEN_MAX = 4096, CHAIN_EVERY = 4, PAGE_SHIFT = 12 };

#define AGAIN_NS (600 * NS_PER_SECOND)

struct BinaryWatch {
    History *history;
    BinaryWatchSink sink;
    bool is_on;
    unsigned n_samples;
    uint64_t seen[SEEN_MAX];
};

int binary_watch_new(History *history, const BinaryWatchSink *sink, BinaryWatch **ret) {
    BinaryWatch *watch = calloc(1, sizeof(*watch));

    if (!watch)
        return -ENOMEM;
    watch->history = history;
    watch->sink = *sink;
    *ret = watch;
    return 0;
}

BinaryWatch *binary_watch_free(BinaryWatch *watch) {
    free(watch);
    return NULL;
}

void binary_watch_set(BinaryWatch *watch, bool is_on) {
    watch->is_on = is_on;
}

static MappedImage binary_watch_image_of(uint32_t pid, const ProcessMapping *mapping) {
    const ProcessImage *image = mapping->image;

    return (MappedImage){.pid = pid,
                         .start = mapping->start,
                         .end = mapping->end,
                         .major = image->major,
                         .minor = image->minor,
                         .inode = image->inode,
                         .generation = image->generation,
                         .path = (const char *)image->path->text};
}

/* "jit-PID.dump", which the program maps for no other purpose than to be found here. */
static bool binary_watch_is_dump(const ProcessImage *image) {
    static const char prefix[] = "jit-", suffix[] = ".dump";
    Bytes path = name_bytes(image->path);
    const uint8_t *slash = memrchr(path.data, '/', path.size);
    size_t n = slash ? (size_t)(path.data + path.size - slash - 1) : 0;

    return n > strlen(prefix) + strlen(suffix) && memcmp(slash + 1, prefix, strlen(prefix)) == 0 &&
           memcmp(slash + 1 + n - strlen(suffix), suffix, strlen(suffix)) == 0;
}

static void binary_watch_code(BinaryWatch *watch, uint32_t pid, const ProcessMaps *maps) {
    MappedImage dump = {.pid = pid, .path = ""};
    const ProcessMapping *mapping;

    for (size_t at = 0; dump.end == 0 && (mapping = maps_next(maps, &at));)
        if (binary_watch_is_dump(mapping->image))
            dump = binary_watch_image_of(pid, mapping);
    watch->sink.on_code(watch->sink.userdata, &dump);
}

/* Memory to which the kernel gives a path although no file is there. */
static bool binary_watch_is_memory(const ProcessImage *image) {
    static const char *const prefixes[] = {"//", "/dev/zero", "/anon_hugepage", "/SYSV", "/memfd:"};

    for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
        if (strncmp((const char *)image->path->text, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return image->path->text[0] != '/' && strcmp((const char *)image->path->text, "[vdso]") != 0;
}

static void binary_watch_mapping(BinaryWatch *watch, uint32_t pid, const ProcessMaps *maps,
                                 const ProcessMapping *mapping) {
    ProcessImage *image = mapping->image;
    uint64_t now_ns = clock_monotonic_ns();
    MappedImage mapped;

    if (image_is_data(image))
        return;
    if (binary_watch_is_memory(image)) {
        binary_watch_code(watch, pid, maps);
        return;
    }
    if (image->kept_ns > 0 && now_ns - image->kept_ns < AGAIN_NS)
        return;
    image->kept_ns = now_ns;
    mapped = binary_watch_image_of(pid, mapping);
    watch->sink.on_file(watch->sink.userdata, &mapped);
}

static void binary_watch_address(BinaryWatch *watch, const PdStamp *stamp, uint64_t generation,
                                 uint64_t address) {
    uint64_t key = hash_u64(generation, (address >> PAGE_SHIFT) ^ (uint64_t)stamp->pid << 40);
    uint64_t *seen = &watch->seen[key % SEEN_MAX];
    const ProcessMapping *mapping;
    const ProcessMaps *maps;

    if (*seen == key)
        return;
    *seen = key;
    maps = history_maps(watch->history, stamp->pid, stamp->time);
    mapping = maps ? maps_find(maps, address) : NULL;
    if (mapping)
        binary_watch_mapping(watch, stamp->pid, maps, mapping);
}

/* The user's part of the chain; an address there is one behind the call. Callers often lie in the
 * page of the function that they call. */
static void binary_watch_chain(BinaryWatch *watch, const PdStamp *stamp, uint64_t generation,
                               const PdU64s *chain) {
    uint64_t page = UINT64_MAX;
    bool is_user = false;

    for (uint64_t i = 0; i < chain->n; i++) {
        uint64_t address = pd_u64_at(chain, i);

        if (address >= PD_CONTEXT_MAX)
            is_user = address == PD_CONTEXT_USER;
        else if (is_user && address >> PAGE_SHIFT != page) {
            page = address >> PAGE_SHIFT;
            binary_watch_address(watch, stamp, generation, address);
        }
    }
}

void binary_watch_see(BinaryWatch *watch, const PdRecord *record, const PdStamp *stamp) {
    uint64_t generation, address;
    PdU64s chain;

    if (!watch->is_on || (int32_t)stamp->pid <= 0)
        return;
    generation = history_generation(watch->history);
    if ((record->misc & PD_MISC_CPUMODE_MASK) == PD_MISC_USER &&
        pd_sample_ip(record, stamp->event, &address))
        binary_watch_address(watch, stamp, generation, address);
    if (watch->n_samples++ % CHAIN_EVERY == 0 && pd_sample_chain(record, stamp->event, &chain))
        binary_watch_chain(watch, stamp, generation, &chain);
}
