/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * PROCMAP_QUERY of Linux 6.11: asks an open /proc/PID/maps what is mapped at an address. The struct
 * is procmap_query of include/uapi/linux/fs.h, which older headers lack.
 */

#include <errno.h>
#include <sys/ioctl.h>

#include "util/macro.h"

typedef struct ProcmapQuery {
    uint64_t size, flags, address;
    uint64_t vma_start, vma_end, vma_flags, vma_page_size, vma_offset;
    uint64_t inode;
    uint32_t major, minor;
    uint32_t name_size, build_id_size; /* in: the size of the buffers; out: the size of the
                                        * content */
    uint64_t name_address, build_id_address;
} ProcmapQuery;

static_assert(sizeof(ProcmapQuery) == 104, "as in the kernel");

enum {
    PROCMAP_READABLE = 1,
    PROCMAP_WRITABLE = 2,
    PROCMAP_EXECUTABLE = 4,
    PROCMAP_SHARED = 8,
    PROCMAP_COVERING_OR_NEXT = 16,
};

/* -ENOENT: nothing (more) is mapped there. -ENOTTY: the kernel has no such query. */
static inline int procmap_query(int maps, ProcmapQuery *query) {
    query->size = sizeof(*query);
    return ioctl(maps, _IOWR('f', 17, ProcmapQuery), query) < 0 ? -errno : 0;
}
