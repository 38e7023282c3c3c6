/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the recorder's calls and the messages that carry them have in common. */

#include <stdint.h>

enum {
    KEEPER_ATTR_MAX = 144, /* bytes of a perf_event_attr */
    KEEPER_TAG_SIZE = 64,  /* what a recorder notes about an event, for the next recorder */
    KEEPER_NO_SLOT = UINT32_MAX,
};

typedef enum KeeperFile {
    KEEPER_MAPS,     /* /proc/PID/task/TID/maps */
    KEEPER_CGROUP,   /* /proc/PID/cgroup */
    KEEPER_KALLSYMS, /* of the kernel, addresses visible */
    KEEPER_MODULES,
    KEEPER_PROC,  /* the folder /proc, for openat(): one that hides no process (hidepid) */
    KEEPER_FILES, /* how many there are */
} KeeperFile;

/* Where a process lives, in the order of the kernel's NAMESPACES record; zeros for a namespace that
 * this kernel does not have. */
enum { KEEPER_NAMESPACES = 7 }; /* net, uts, ipc, pid, user, mnt, cgroup */
typedef struct KeeperNamespace {
    uint64_t dev, inode;
} KeeperNamespace;

/* Which file it is, as far as that is known without asking a server. */
typedef struct KeeperFileId {
    uint32_t major, minor; /* by stat(), which for some file systems differ from those of maps */
    uint64_t inode, size;
    int64_t mtime_ns, ctime_ns;
    uint32_t generation, has_generation;
} KeeperFileId;
