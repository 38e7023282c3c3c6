/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Small recordings of one event for the tests of what writes and mends them. */

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "perfdata/writer/writer.h"
#include "test.h"

enum { MADE_SAMPLE_SIZE = 40, MADE_MMAP_SIZE = 112 };

static const uint64_t made_ids[] = {11, 12};

/* IDENTIFIER, IP, TID, TIME; its attr fits 64 bytes. */
static inline PdEvent made_event(void) {
    return (PdEvent){.attr = {.type = PD_TYPE_SOFTWARE,
                              .sample_type = PD_SAMPLE_IDENTIFIER | PD_SAMPLE_IP | PD_SAMPLE_TID |
                                             PD_SAMPLE_TIME,
                              .sample_period = 1000,
                              .flags = PD_ATTR_SAMPLE_ID_ALL},
                     .ids = (uint64_t *)made_ids,
                     .n_ids = ARRAY_SIZE(made_ids),
                     .name = (char *)"clock",
                     .name_given = true,
                     .scale = 1};
}

static inline void put_header(Buffer *b, uint32_t type, uint16_t misc, uint16_t size, bool swap) {
    buffer_u32(b, type, swap);
    buffer_u16(b, misc, swap);
    buffer_u16(b, size, swap);
}

static inline void put_sample(Buffer *b, uint64_t time, bool swap) {
    put_header(b, PD_RECORD_SAMPLE, PD_MISC_USER, MADE_SAMPLE_SIZE, swap);
    buffer_u64(b, made_ids[0], swap);
    buffer_u64(b, 0x401000 + time % 7, swap);
    buffer_u32(b, 7, swap);
    buffer_u32(b, 8, swap);
    buffer_u64(b, time, swap);
}

/* An MMAP2 with a build id that starts with `first`. */
static inline void put_mmap(Buffer *b, const char *name, uint8_t first, uint64_t time, bool swap) {
    size_t n = strlen(name);
    uint8_t id[24] = {20, 0, 0, 0, first};

    put_header(b, PD_RECORD_MMAP2, PD_MISC_USER | PD_MISC_MMAP_BUILD_ID, MADE_MMAP_SIZE, swap);
    buffer_u32(b, 7, swap);
    buffer_u32(b, 7, swap);
    buffer_u64(b, 0x400000, swap);
    buffer_u64(b, 0x1000, swap);
    buffer_u64(b, 0, swap);
    buffer_append(b, id, sizeof(id));
    buffer_u32(b, 5, swap);
    buffer_u32(b, 2, swap);
    buffer_append(b, name, MIN(n, (size_t)15));
    buffer_zero(b, 16 - MIN(n, (size_t)15));
    buffer_u32(b, 7, swap);
    buffer_u32(b, 7, swap);
    buffer_u64(b, time, swap);
    buffer_u64(b, made_ids[0], swap);
}

static inline Bytes text_bytes(const char *s) {
    return (Bytes){.data = (const uint8_t *)s, .size = strlen(s)};
}

static inline int memory_file(void) {
    return memfd_create("recording", MFD_CLOEXEC);
}

/* All that a descriptor holds; to be freed. */
static inline Bytes whole_file(int fd) {
    struct stat st = {};
    uint8_t *p = fstat(fd, &st) < 0 ? NULL : malloc((size_t)st.st_size + 1);

    if (!p || pread(fd, p, (size_t)st.st_size, 0) != st.st_size)
        abort();
    return (Bytes){.data = p, .size = (size_t)st.st_size};
}
