/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "stack/unwinder.h"

#include <elf.h>
#include <errno.h>
#include <linux/perf_event.h>

#include "perfdata/record/sample-chain.h"
#include "scan/cache/vdso-file.h"
#include "stack/pointer-chain.h"
#include "util/clock.h"

/*
 * The walk of lib/unwind asks what lies at an address; the answer comes from what the history knows
 * of the process at the time of the sample, and from the tables. Rules that were found stay in a
 * cache as long as the mappings of the process stay what they are. When the tables change, which is
 * rare once the programs of a host are known, the cache begins anew.
 */

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#elif defined(__aarch64__)
#define MACHINE EM_AARCH64
#else
#define MACHINE EM_NONE
#endif

struct Unwinder {
    History *history;
    TableCache *tables;
    uint64_t version; /* of the tables, of which the cache knows */
    uint64_t now_ns;  /* of the records at hand */
    UnwindCache cache;
};

/* The process whose sample is unwound. */
typedef struct UnwinderSpace {
    Unwinder *unwinder;
    const ProcessMaps *maps;
    uint32_t pid;
} UnwinderSpace;

int unwinder_new(History *history, TableCache *tables, Unwinder **ret) {
    Unwinder *unwinder = calloc(1, sizeof(*unwinder));

    if (!unwinder)
        return -ENOMEM;
    unwinder->history = history;
    unwinder->tables = tables;
    *ret = unwinder;
    return 0;
}

Unwinder *unwinder_free(Unwinder *unwinder) {
    free(unwinder);
    return NULL;
}

/* A table that is not there is asked for, and one that is there now and then, since its file may
 * have changed. */
static UnwindCode unwinder_find_table(const UnwinderSpace *space, const ProcessMapping *mapping,
                                      UnwindMapping *ret) {
    const ProcessImage *image = mapping->image;
    MappedImage mapped = {.pid = space->pid,
                          .start = mapping->start,
                          .major = image->major,
                          .minor = image->minor,
                          .inode = image->inode,
                          .generation = image->generation,
                          .path = (const char *)image->path->text};
    TableState state;

    /* Known from a recording; which file it is comes from /proc soon. */
    if (mapped.inode == 0 && mapped.path[0] == '/' && image->build_id_size > 0)
        return UNWIND_CODE_PENDING;
    if (!vdso_is_mapped(&mapped) && (mapped.inode == 0 || mapped.path[0] != '/'))
        return UNWIND_CODE_ANONYMOUS;
    state = table_cache_find(space->unwinder->tables, &mapped, &ret->table);
    (void)table_cache_want(space->unwinder->tables, &mapped, space->unwinder->now_ns);
    if (state != TABLE_READY)
        return state == TABLE_REFUSED ? UNWIND_CODE_REFUSED : UNWIND_CODE_PENDING;
    return unwind_table_bias(ret->table, mapping->start, mapping->end - mapping->start,
                             mapping->pgoff, &ret->bias) < 0
               ? UNWIND_CODE_REFUSED
               : UNWIND_CODE_TABLE;
}

static void unwinder_find(void *userdata, uint64_t address, UnwindMapping *ret) {
    const UnwinderSpace *space = userdata;
    const ProcessMapping *mapping = maps_find(space->maps, address);

    *ret = (UnwindMapping){.code = UNWIND_CODE_NONE};
    if (!mapping || image_is_data(mapping->image))
        return;
    ret->start = mapping->start;
    ret->end = mapping->end;
    ret->code = unwinder_find_table(space, mapping, ret);
}

/* Whether a walk by frame pointers ends here if it ends well: code with a table says itself where
 * the outermost frame is. */
static bool unwinder_has_no_rule(const UnwindMapping *mapping, uint64_t address) {
    return mapping->code != UNWIND_CODE_TABLE ||
           unwind_table_find(mapping->table, address - mapping->bias).kind == UNWIND_NONE;
}

/*
 * Goes on where the frame pointer leads to another stack, as in Go, or above the copy: the kernel
 * has walked by frame pointers as well, in the memory of the process.
 */
static UnwindVerdict unwinder_continue(UnwinderSpace *space, const PdCallchain *by_pointer,
                                       UnwindVerdict verdict, UnwindChain *chain) {
    UnwindMapping mapping = {};
    uint64_t address = 0;

    for (uint64_t i = pointer_chain_rest(by_pointer, chain); i < by_pointer->n; i++) {
        if (chain->n == UNWIND_FRAMES_MAX)
            return UNWIND_TRUNCATED;
        address = pd_u64_at(by_pointer, i) - 1;
        if (mapping.code == UNWIND_CODE_NONE || address < mapping.start || address >= mapping.end)
            unwinder_find(space, address, &mapping);
        if (mapping.code == UNWIND_CODE_NONE)
            return verdict;
        chain->addresses[chain->n++] = address + 1;
    }
    return verdict != UNWIND_PENDING && address != 0 && by_pointer->n < UNWIND_FRAMES_MAX &&
                   unwinder_has_no_rule(&mapping, address)
               ? UNWIND_WHOLE
               : verdict;
}

/* A 32-bit program keeps the chain that the kernel found by frame pointers. */
static UnwindVerdict unwinder_walk_32_bit(const UnwindSample *taken, const PdCallchain *by_pointer,
                                          UnwindChain *chain) {
    UnwindVerdict verdict = unwind_walk(taken, &(UnwindSpace){}, NULL, chain);

    if (pd_chain_before_user(by_pointer) < by_pointer->n)
        chain->n = 0;
    return verdict;
}

static UnwindVerdict unwinder_walk(Unwinder *unwinder, const PdSample *sample, UnwindChain *chain) {
    UnwinderSpace of_process = {.unwinder = unwinder, .pid = sample->pid};
    UnwindSample taken = {
        .machine = MACHINE,
        .abi = sample->user_regs.abi,
        .mask = sample->user_regs.mask,
        .registers = {.data = sample->user_regs.values.data,
                      .size = (size_t)sample->user_regs.values.n * sizeof(uint64_t)},
        .stack = sample->user_stack,
    };
    UnwindSpace space = {.find = unwinder_find, .userdata = &of_process};
    UnwindVerdict verdict;

    chain->n = 0;
    if (sample->user_regs.abi == 0)
        return UNWIND_NO_USER;
    if (sample->user_regs.abi == PERF_SAMPLE_REGS_ABI_32)
        return unwinder_walk_32_bit(&taken, &sample->callchain, chain);
    of_process.maps = history_maps(unwinder->history, sample->pid, sample->time);
    /* Its mappings are still to be read from /proc. */
    if (!of_process.maps)
        return UNWIND_PENDING;
    space.version = maps_version(of_process.maps);
    verdict = unwind_walk(&taken, &space, &unwinder->cache, chain);
    return chain->leaves_copy ? unwinder_continue(&of_process, &sample->callchain, verdict, chain)
                              : verdict;
}

/* An event with stacks of its own keeps them in its samples: the recording announces them. */
static bool unwinder_has_stack(const PdEvent *taken, const PdEvents *stored) {
    const uint64_t needed = PD_SAMPLE_CALLCHAIN | PD_SAMPLE_REGS_USER | PD_SAMPLE_STACK_USER;
    const PdEvent *event = pd_events_at(stored, taken->index);

    return (taken->attr.sample_type & needed) == needed &&
           !(event->attr.sample_type & PD_SAMPLE_STACK_USER);
}

/* False: it is not what its event announces, and there may be a stack anywhere in it. What lies
 * behind its fields nobody wrote: it is what the ring held before, most often the stack of another
 * process. */
static bool unwinder_take_sample(Unwinder *unwinder, const PdRecord *record, const PdEvent *event,
                                 const PdEvents *stored, Buffer *out, UnwinderCounts *counts) {
    UnwindVerdict verdict;
    UnwindChain chain;
    PdSample sample;

    if (!event || !pd_sample_is_whole(record, event) || pd_sample_parse(record, event, &sample) < 0)
        return false;
    if (!unwinder_has_stack(event, stored)) {
        buffer_append(out, record->data, record->size);
        return true;
    }
    verdict = unwinder_walk(unwinder, &sample, &chain);
    counts->samples[verdict]++;
    pd_sample_append_unwound(out, record, &sample, chain.addresses, chain.n);
    return true;
}

size_t unwinder_take(Unwinder *unwinder, const PdEvents *taken, const PdEvents *stored,
                     Bytes records, Buffer *out, UnwinderCounts *counts) {
    uint64_t version = table_cache_version(unwinder->tables);
    size_t left_out = 0;
    PdStamp stamp = {};
    PdRecord record;

    if (version != unwinder->version)
        memset(&unwinder->cache, 0, sizeof(unwinder->cache));
    unwinder->version = version;
    unwinder->now_ns = clock_monotonic_ns();
    while (pd_records_next(&records, &record)) {
        if (record.type != PD_RECORD_SAMPLE)
            buffer_append(out, record.data, record.size);
        else if (pd_events_stamp_next(taken, &record, &stamp) < 0 ||
                 !unwinder_take_sample(unwinder, &record, stamp.event, stored, out, counts))
            left_out++;
    }
    return left_out;
}
