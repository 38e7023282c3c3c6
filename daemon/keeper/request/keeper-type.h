/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the recorder's calls and the messages have in common. */

#include <stdint.h>

enum {
    KEEPER_ATTR_MAX = 144, /* bytes of a perf_event_attr */
    KEEPER_TAG_SIZE = 64,  /* a recorder's note about an event, for the next recorder */
    KEEPER_NO_SLOT = UINT32_MAX,
    KEEPER_RING_BYTES_MAX = 256 * 1024 * 1024, /* of one ring */
};

/* A connection to the keeper, shared by all threads. */
typedef struct Keeper Keeper;

/* Sockets to processes that the keeper starts, one for each lane. */
typedef enum KeeperLane {
    KEEPER_LANE_SYSTEM, /* opens files of the kernel: /proc, tracefs */
    KEEPER_LANE_IMAGES, /* opens files of other processes, on any file system */
    KEEPER_LANE_SEAL,   /* hands finished files to their readers */
    KEEPER_LANE_MAPS,   /* reads what other processes map */
    KEEPER_LANE_CLOSE,  /* closes what may take for ever to close */
    KEEPER_LANE_ELF,    /* reads ELF files, see elf/elf-request.h */
    KEEPER_LANES,       /* the number of lanes */
} KeeperLane;

typedef enum KeeperFile {
    KEEPER_KALLSYMS, /* /proc/kallsyms with visible addresses */
    KEEPER_MODULES,
    KEEPER_PROC,  /* the folder /proc, for openat(), without hidden processes (hidepid) */
    KEEPER_FILES, /* the number of kinds */
} KeeperFile;

/* Which mappings of a process the helper reads. */
typedef enum KeeperMaps {
    KEEPER_MAPS_NONE,
    KEEPER_MAPS_CODE, /* the executable ones */
    KEEPER_MAPS_ALL,
    KEEPER_MAPS_AT,    /* the one at an address; all, where the kernel cannot be asked for it */
    KEEPER_MAPS_KINDS, /* the number of kinds */
} KeeperMaps;

/* The texts of a process are a file: its stat file before and after its maps were read, each padded
 * with zeros, and then lines of maps, where its offset is. */
enum { KEEPER_STAT_BYTES = 1024, KEEPER_STATS_BYTES = 2 * KEEPER_STAT_BYTES };

/* The namespaces of a process, in the order of the kernel's NAMESPACES record; zeros for a
 * namespace that this kernel does not have. */
enum { KEEPER_NAMESPACES = 7 }; /* net, uts, ipc, pid, user, mnt, cgroup */
typedef struct KeeperNamespace {
    uint64_t dev, inode;
} KeeperNamespace;

/* The identity of a file, as far as it is known without asking a file server. */
typedef struct KeeperFileId {
    uint32_t major, minor; /* from stat(); some file systems report others in maps */
    uint64_t inode, size;
    int64_t mtime_ns, ctime_ns;
    uint32_t generation, has_generation;
} KeeperFileId;
