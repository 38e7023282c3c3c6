/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "process/dso.h"
#include "profile/intake/builder-private.h"

/*
 * From an address in a process to a numbered frame. The state of an address space has a version
 * that no other has, so the results for (version, address) are kept in a table that forgets by
 * overwriting, and so are the mappings they lie in. A frame of a file is an offset in it, equal in
 * all processes; others are virtual addresses.
 */

enum {
    FRAME_SLOTS = 1 << 16,
    MAPPING_SLOTS = 1 << 10,
};

static Bytes builder_frame_text(const char *s) {
    return (Bytes){.data = (const uint8_t *)s, .size = strlen(s)};
}

static bool builder_frame_starts(Bytes text, const char *with) {
    size_t n = strlen(with);

    return text.size >= n && memcmp(text.data, with, n) == 0;
}

static Bytes builder_frame_last_part(Bytes path) {
    const uint8_t *slash = path.size > 0 ? memrchr(path.data, '/', path.size) : NULL;
    size_t before = slash ? (size_t)(slash + 1 - path.data) : 0;

    return before < path.size ? (Bytes){.data = path.data + before, .size = path.size - before}
                              : path;
}

/* The number behind a prefix, as in "/tmp/perf-77.map"; 0: there is none. */
static uint32_t builder_frame_pid_in(Bytes name, const char *prefix) {
    uint64_t pid = 0;
    size_t at = strlen(prefix);

    if (!builder_frame_starts(name, prefix))
        return 0;
    for (; at < name.size && name.data[at] >= '0' && name.data[at] <= '9' && pid <= UINT32_MAX;
         at++)
        pid = pid * 10 + (uint64_t)(name.data[at] - '0');
    return pid <= UINT32_MAX ? (uint32_t)pid : 0;
}

static const ProcessMapping *builder_frame_first_of(const ProcessMaps *maps,
                                                    const ProcessImage *image) {
    const ProcessMapping *mapping;

    for (size_t at = 0; (mapping = maps_next(maps, &at));)
        if (mapping->image == image)
            return mapping;
    return NULL;
}

/* Names are those that perf's tables show: a vmlinux is the kernel, whatever its path. */
static void builder_frame_describe_kernel(const FrameSpace *space, const ProcessImage *image,
                                          FrameMapping *m) {
    const ProcessMapping *first = builder_frame_first_of(space->maps, image);

    if (image->kernel)
        m->kind = FRAME_KERNEL;
    else if (builder_frame_starts(m->path, "/") || builder_frame_starts(m->path, "["))
        m->kind = FRAME_MODULE;
    else
        m->kind = FRAME_BPF;
    m->start = first ? (image->kernel && first->pgoff > 0 ? first->pgoff : first->start) : 0;
    if (image->kernel && memmem(m->dso.data, m->dso.size, "vmlinux", strlen("vmlinux")))
        m->dso = builder_frame_text("[kernel.vmlinux]");
    else
        m->dso = builder_frame_last_part(m->dso);
}

static void builder_frame_describe_user(const FrameSpace *space, FrameMapping *m,
                                        char scratch[DSO_NAME_MAX]) {
    uint32_t pid = builder_frame_pid_in(m->dso, "/tmp/perf-");

    m->kind = FRAME_USER;
    if (pid > 0) {
        int n = snprintf(scratch, DSO_NAME_MAX, "[JIT] tid %" PRIu32, pid);

        m->kind = FRAME_JIT;
        m->pid = pid;
        m->dso = (Bytes){.data = (const uint8_t *)scratch, .size = (size_t)n};
        return;
    }
    m->dso = builder_frame_last_part(m->dso);
    if (builder_frame_starts(m->path, "[vdso"))
        m->kind = FRAME_VDSO;
    else if (builder_frame_starts(m->path, "//anon") || builder_frame_starts(m->path, "/memfd:") ||
             builder_frame_starts(m->path, "/dev/zero"))
        m->kind = FRAME_JIT;
    else if (builder_frame_pid_in(m->dso, "jit-") > 0)
        m->kind = FRAME_JIT;
    if (m->kind == FRAME_JIT)
        m->pid = builder_frame_pid_in(m->dso, "jit-") ?: space->pid;
}

static FrameMapping builder_frame_describe(const ProfileBuilder *builder, const FrameSpace *space,
                                           const ProcessImage *image, char scratch[DSO_NAME_MAX]) {
    FrameMapping m = {.path = pd_filename_unmark(name_bytes(image->path)),
                      .dso = name_bytes(image->dso),
                      .build_id_size = image->build_id_size,
                      .major = image->major,
                      .minor = image->minor,
                      .inode = image->inode,
                      .generation = image->generation};

    if (builder->has_clock && space->time > 0)
        m.sampled_ns = space->time + builder->time_shift + builder->real_offset;
    memcpy(m.build_id, image->build_id, sizeof(m.build_id));
    if (space->cpumode == PD_MISC_KERNEL)
        builder_frame_describe_kernel(space, image, &m);
    else
        builder_frame_describe_user(space, &m, scratch);
    if (!pd_filename_is_marked(name_bytes(image->path)))
        builder_build_ids_find(builder, &m);
    return m;
}

static FrameKind builder_frame_kind_of_unmapped(unsigned cpumode) {
    switch (cpumode) {
    case PD_MISC_HYPERVISOR:
        return FRAME_HYPERVISOR;
    case PD_MISC_GUEST_KERNEL:
    case PD_MISC_GUEST_USER:
        return FRAME_GUEST;
    default:
        return FRAME_UNKNOWN;
    }
}

static MappingSlot *builder_frame_mapping_slot(ProfileBuilder *builder, uint64_t version,
                                               uint64_t start) {
    uint64_t hash = hash_u64(hash_u64(builder->seed, version), start);

    return &builder->mapping_slots[hash & (MAPPING_SLOTS - 1)];
}

int builder_mapping(ProfileBuilder *builder, const FrameSpace *space, const ProcessMapping *mapping,
                    MappingSlot **ret) {
    MappingSlot *slot = builder_frame_mapping_slot(builder, space->version, mapping->start);
    char scratch[DSO_NAME_MAX];

    if (slot->version != space->version || slot->start != mapping->start) {
        FrameMapping m = builder_frame_describe(builder, space, mapping->image, scratch);
        uint32_t number;
        int r = frame_table_add_mapping(builder->profile->frames, &m, &number);

        if (r < 0)
            return r;
        *slot = (MappingSlot){
            .version = space->version, .start = mapping->start, .mapping = number, .kind = m.kind};
    }
    *ret = slot;
    return 0;
}

static int builder_frame_add(ProfileBuilder *builder, const FrameSpace *space, uint64_t address,
                             bool is_return, uint32_t *ret) {
    const ProcessMapping *mapping = space->maps ? maps_find(space->maps, address) : NULL;
    Frame frame = {.is_return = is_return, .address = address};
    FrameKind kind = builder_frame_kind_of_unmapped(space->cpumode);
    MappingSlot *slot;
    int r;

    if (mapping) {
        r = builder_mapping(builder, space, mapping, &slot);
        if (r < 0)
            return r;
        frame.mapping = slot->mapping;
        kind = slot->kind;
    } else
        r = frame_table_add_mapping(
            builder->profile->frames,
            &(FrameMapping){.kind = kind, .dso = builder_frame_text("[unknown]")}, &frame.mapping);
    if (r < 0)
        return r;
    if (mapping && (kind == FRAME_USER || kind == FRAME_VDSO))
        frame.address = address - mapping->start + mapping->pgoff;
    return frame_table_add(builder->profile->frames, &frame, ret);
}

FrameSpace builder_space(ProfileBuilder *builder, const PdSample *sample, unsigned cpumode) {
    const ProcessMaps *maps = process_table_maps(builder->table, sample->pid, sample->tid, cpumode);

    return (FrameSpace){.maps = maps,
                        .version = maps ? maps_version(maps) : 0,
                        .pid = sample->pid,
                        .cpumode = cpumode,
                        .time = sample->time};
}

int builder_frame(ProfileBuilder *builder, const FrameSpace *space, uint64_t address,
                  bool is_return, uint32_t *ret) {
    uint8_t tag = (uint8_t)(space->cpumode << 1 | is_return) + 1;
    uint64_t hash = hash_u64(space->version << 4 ^ tag ^ builder->seed, address);
    FrameSlot *slot = &builder->frame_slots[hash & (FRAME_SLOTS - 1)];
    int r;

    if (slot->version != space->version || slot->address != address || slot->tag != tag) {
        r = builder_frame_add(builder, space, address, is_return, ret);
        if (r < 0)
            return r;
        *slot =
            (FrameSlot){.version = space->version, .address = address, .frame = *ret, .tag = tag};
    }
    *ret = slot->frame;
    return 0;
}

int builder_frames_new(ProfileBuilder *builder) {
    builder->frame_slots = calloc(FRAME_SLOTS, sizeof(*builder->frame_slots));
    builder->mapping_slots = calloc(MAPPING_SLOTS, sizeof(*builder->mapping_slots));
    return builder->frame_slots && builder->mapping_slots ? 0 : -ENOMEM;
}

void builder_frames_forget(ProfileBuilder *builder) {
    memset(builder->frame_slots, 0, FRAME_SLOTS * sizeof(*builder->frame_slots));
    memset(builder->mapping_slots, 0, MAPPING_SLOTS * sizeof(*builder->mapping_slots));
}

void builder_frames_done(ProfileBuilder *builder) {
    free(builder->frame_slots);
    free(builder->mapping_slots);
}
