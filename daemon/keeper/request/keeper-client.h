/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The recorder's end of the keeper: descriptors that only the privileged half can open, and the
 * events and rings that outlive a recorder. Each call is one request and one reply; calls may come
 * from any thread. All return 0 or the negative errno that the keeper met (-EPIPE: it is gone).
 */

#include <stdbool.h>
#include <stdint.h>

#include "keeper/request/keeper-type.h"
#include "util/macro.h"

typedef struct Keeper Keeper;

/* Over the socket that the keeper left open for its recorder (owned from here on). */
int keeper_connect(int fd, Keeper **ret);
/* While the calling thread waits for an answer, on_wait is called every few milliseconds; it must
 * not call the keeper. NULL: the thread just waits again. One thread at a time has it. */
void keeper_set_wait(Keeper *keeper, void (*on_wait)(void *userdata), void *userdata);
/* Becomes readable when the keeper is gone, and only then. */
int keeper_fd(const Keeper *keeper);
Keeper *keeper_disconnect(Keeper *keeper);
DEFINE_CLEANUP(Keeper *, keeper_disconnect);

/* What is to be opened, or what is open. An event is known by its slot. */
typedef struct KeeperEvent {
    uint8_t attr[KEEPER_ATTR_MAX]; /* host order, attr_size bytes of it */
    uint32_t attr_size;
    int32_t pid;          /* -1: all; >= 0: this thread, followed through forks by attr.inherit */
    int32_t cpu;          /* -1: any, with a pid */
    const char *cgroup;   /* path below the cgroup root, NULL: none; excludes a pid */
    uint32_t leader_slot; /* of the group it joins; KEEPER_NO_SLOT: its own */
    uint32_t output_slot; /* whose ring it writes to; KEEPER_NO_SLOT: its own */
    uint64_t ring_bytes;  /* its own ring, a power of two; 0: none */
    uint8_t tag[KEEPER_TAG_SIZE];
} KeeperEvent;

/* Opens, maps the ring, and hands the descriptor over (mapping it again costs no right). */
int keeper_open_event(Keeper *keeper, const KeeperEvent *event, uint32_t *ret_slot, int *ret_fd);
/* Closes and unmaps on the keeper's side. */
int keeper_close_event(Keeper *keeper, uint32_t slot);
/* Walks what is open, begun with KEEPER_NO_SLOT: 1 with the first slot above *slot, its event
 * (attr, pid, cpu, ring_bytes, leader, output and tag; cgroup NULL) and a descriptor; 0 at the end.
 */
int keeper_next_event(Keeper *keeper, uint32_t *slot, KeeperEvent *ret, int *ret_fd);

/* Files are answered by a process of the keeper's own: a file system that does not answer costs
 * -ETIMEDOUT, and nobody else waits. pid and tid are 0 for files of the kernel; a
 * tid of 0 means the process as a whole. */
int keeper_open_file(Keeper *keeper, KeeperFile file, uint32_t pid, uint32_t tid, int *ret_fd);
/* Where a process lives. */
int keeper_read_namespaces(Keeper *keeper, uint32_t pid, KeeperNamespace ret[KEEPER_NAMESPACES]);
/* What a process has mapped at exactly start to end, deleted or not; an ELF file, or -ENOEXEC.
 * -EOPNOTSUPP: on a file system whose server is somebody's program. */
int keeper_open_mapped(Keeper *keeper, uint32_t pid, uint64_t start, uint64_t end,
                       KeeperFileId *ret_id, int *ret_fd);
/* A file by its path as the process sees it; an ELF program or library (or a module of the kernel),
 * or -ENOEXEC. -EACCES: the recorder's own user may not read it, or not look at the process. */
int keeper_open_image(Keeper *keeper, uint32_t pid, const char *path, KeeperFileId *ret_id,
                      int *ret_fd);
/* The program that reads ELF files: a socket to it, on which elf/request.h is spoken. One that was
 * started before is killed. -EBUSY: too many of them are stuck in file systems. */
int keeper_start_elf(Keeper *keeper, uint32_t *ret_pid, int *ret_fd);
/* How the last one ended, as wait() tells; -EINPROGRESS: it has not. */
int keeper_elf_end(Keeper *keeper, int *ret_status);
/* From now on no call waits for an opener's answer any more: -ECANCELED. */
void keeper_stop_waiting(Keeper *keeper);
/* Readable from then on. */
int keeper_stop_fd(const Keeper *keeper);
/* "sched/sched_switch/id", "sched/sched_switch/format", "header_page", "header_event",
 * "../printk_formats", "../saved_cmdlines": a file below tracefs' events folder of those that a
 * recording needs, or a folder to list: "sched/", "./". */
int keeper_open_tracefs(Keeper *keeper, const char *path, int *ret_fd);

/* A finished file becomes root's, readable for the group profd-read (sensitive: for root and
 * profd-admin alone). A folder stays the recorder's, who could not make room in it otherwise, and
 * becomes readable for that group; what is in it is sealed one by one. -ETIMEDOUT: the file system
 * did not answer in time, and may still make the change. */
int keeper_seal(Keeper *keeper, int fd, bool sensitive);
/* The control socket, listening; -ENOENT: this keeper has none. It outlives recorders. */
int keeper_listen(Keeper *keeper, int *ret_fd);
/* Before a recorder touches rings or the store: returns at once, or, where it was started to follow
 * one that still runs, when that one has finished. */
int keeper_take_over(Keeper *keeper);
/* The recorder records: from now on its death is a reason to start it again. */
int keeper_ready(Keeper *keeper);

typedef struct KeeperStatus {
    uint32_t n_events; /* open now: more than 0 for a new recorder means that it follows another */
    uint32_t restarts; /* of recorders that died, since the keeper began */
    bool upgraded;     /* this recorder follows one that made room for it */
    uint64_t cpu_ns;   /* what the keeper and its helpers have used */
} KeeperStatus;

int keeper_status(Keeper *keeper, KeeperStatus *ret);
