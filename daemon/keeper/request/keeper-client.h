/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The recorder's side of the keeper: descriptors that only the privileged process can open, and the
 * events and rings that outlive a recorder. Each call is one request and one reply; calls may come
 * from any thread. All return 0 or the keeper's negative errno (-EPIPE: the keeper is gone).
 */

#include <stdbool.h>
#include <stdint.h>

#include "keeper/request/keeper-type.h"
#include "util/macro.h"

/* Connects over the socket that the keeper passed to its recorder (takes ownership of fd). */
int keeper_connect(int fd, Keeper **ret);
/* Becomes readable only when the keeper is gone. */
int keeper_fd(const Keeper *keeper);
Keeper *keeper_disconnect(Keeper *keeper);
DEFINE_CLEANUP(Keeper *, keeper_disconnect);

/* An event to open, or an open one, which is identified by its slot. */
typedef struct KeeperEvent {
    uint8_t attr[KEEPER_ATTR_MAX]; /* in host byte order, attr_size bytes */
    uint32_t attr_size;
    int32_t pid;          /* -1: all; >= 0: this thread, and its children if attr.inherit is set */
    int32_t cpu;          /* -1: any, with a pid */
    const char *cgroup;   /* path relative to the cgroup root, NULL: none; excludes a pid */
    uint32_t leader_slot; /* leader of the group that it joins; KEEPER_NO_SLOT: none */
    uint32_t output_slot; /* the event whose ring it writes to; KEEPER_NO_SLOT: its own */
    uint64_t ring_bytes;  /* size of its own ring, a power of two; 0: none */
    uint8_t tag[KEEPER_TAG_SIZE];
} KeeperEvent;

/* Opens the event, maps its ring, and returns the descriptor (mapping it again needs no rights). */
int keeper_open_event(Keeper *keeper, const KeeperEvent *event, uint32_t *ret_slot, int *ret_fd);
/* Makes memory of this many bytes, whole pages, that outlives the recorder as a ring does, and
 * returns the descriptor to map. Its size cannot change. */
int keeper_open_memory(Keeper *keeper, uint64_t bytes, const uint8_t tag[KEEPER_TAG_SIZE],
                       uint32_t *ret_slot, int *ret_fd);
/* Makes the keeper close and unmap it. */
int keeper_close_event(Keeper *keeper, uint32_t slot);
/* Iterates over the open events, starting with KEEPER_NO_SLOT: 1 and the first slot above *slot,
 * its event (attr, pid, cpu, ring_bytes, leader, output and tag; cgroup NULL) and a descriptor; 0
 * at the end. Memory has an attr_size of 0. */
int keeper_next_event(Keeper *keeper, uint32_t *slot, KeeperEvent *ret, int *ret_fd);

/* Helper processes of the keeper open and read files: if a file system does not answer, the call
 * fails with -ETIMEDOUT, and nobody else waits. */
int keeper_open_file(Keeper *keeper, KeeperFile file, int *ret_fd);
/* Reads the texts of a process (see KEEPER_STATS_BYTES), its maps through one of its threads: those
 * that were asked for and perhaps others. `address` is for KEEPER_MAPS_AT, otherwise 0. Without its
 * maps, *ret_maps is a negative errno. -ETIMEDOUT: the process keeps itself from being read. */
int keeper_read_process(Keeper *keeper, uint32_t pid, uint32_t tid, KeeperMaps maps,
                        uint64_t address, int *ret_maps, int *ret_fd);
/* How long to wait for a process that does not let itself be read, from now on. For the thread that
 * reads processes. */
void keeper_set_patience(Keeper *keeper, unsigned ms);
/* Reads the namespaces of a process. */
int keeper_read_namespaces(Keeper *keeper, uint32_t pid, KeeperNamespace ret[KEEPER_NAMESPACES]);
/* Opens what a process has mapped at exactly start to end, even if it was deleted; fails with
 * -ENOEXEC if it is no ELF file. -EOPNOTSUPP: it is on a FUSE file system, whose server may never
 * answer. */
int keeper_open_mapped(Keeper *keeper, uint32_t pid, uint64_t start, uint64_t end,
                       KeeperFileId *ret_id, int *ret_fd);
/* Opens a file by its path in the process's root; an ELF program or library (or a kernel
 * module), else -ENOEXEC. -EACCES: the recorder's own user may not read it, or may not inspect
 * the process. */
int keeper_open_image(Keeper *keeper, uint32_t pid, const char *path, KeeperFileId *ret_id,
                      int *ret_fd);
/* Opens the file in which a process names the code that it generates: with end 0 the perf map in
 * its /tmp, for which `inner` is its pid in its own namespace; else the jitdump that it maps at
 * exactly start to end. -EACCES: it is not a plain file of its own, on the way are links, or it is
 * no such file; -EFBIG: it is too large. */
int keeper_open_code_map(Keeper *keeper, uint32_t pid, uint32_t inner, uint64_t start, uint64_t end,
                         int *ret_fd);
/* Starts the program that reads ELF files and returns a socket to it, see elf/elf-request.h. Kills
 * one that was started before. -EBUSY: too many of them are stuck in file systems. */
int keeper_start_elf(Keeper *keeper, uint32_t *ret_pid, int *ret_fd);
/* How the last one ended, as a wait() status; -EINPROGRESS: it is still running. */
int keeper_elf_end(Keeper *keeper, int *ret_status);
/* From now on calls no longer wait for an opener's answer: -ECANCELED. */
void keeper_stop_waiting(Keeper *keeper);
/* Becomes readable after that. */
int keeper_stop_fd(const Keeper *keeper);
/* Opens a file below tracefs' events folder that recordings need: "sched/sched_switch/id",
 * "sched/sched_switch/format", "header_page", "header_event", "../printk_formats",
 * "../saved_cmdlines", or a folder to list: "sched/", "./". */
int keeper_open_tracefs(Keeper *keeper, const char *path, int *ret_fd);

/* Makes a finished file root's and readable for the group profd-read (sensitive: for root and
 * profd-admin only). A folder stays the recorder's, which could not delete files in it otherwise,
 * and becomes readable for that group; its files are sealed one by one. -ETIMEDOUT: the file system
 * did not answer in time, and may still make the change. */
int keeper_seal(Keeper *keeper, int fd, bool sensitive);
/* Has a helper close it, since that may take for ever, and does not wait. False: no helper took it,
 * and it is still open. */
bool keeper_dispose(Keeper *keeper, int fd);
/* The listening control socket; -ENOENT: this keeper has none. It outlives recorders. */
int keeper_listen(Keeper *keeper, int *ret_fd);
/* Must be called before a recorder touches rings or the store: returns at once or, if another
 * recorder still runs, when that one has finished. */
int keeper_take_over(Keeper *keeper);
/* Reports that the recorder records: from now on the keeper restarts it if it dies. */
int keeper_ready(Keeper *keeper);

typedef struct KeeperStatus {
    uint32_t n_events;  /* open now: more than 0 in a new recorder means that another one ran
                         * before it */
    uint32_t restarts;  /* recorders that died since the keeper began */
    bool upgraded;      /* this recorder has taken over from one that finished for it */
    bool lacks_elf;     /* profd-elf is not installed */
    bool lacks_locking; /* rings count against RLIMIT_MEMLOCK */
    uint64_t cpu_ns;    /* CPU time of the keeper and its helpers */
} KeeperStatus;

int keeper_status(Keeper *keeper, KeeperStatus *ret);
