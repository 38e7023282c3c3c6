/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What a frame of a stack is: a place in a mapping, known by the identity of what is mapped. */

#include <stdbool.h>
#include <stdint.h>

#include "util/bytes.h"

enum { FRAME_BUILD_ID_MAX = 20 };

typedef enum FrameKind {
    FRAME_UNKNOWN, /* nothing is known to be mapped there */
    FRAME_USER,
    FRAME_KERNEL,
    FRAME_MODULE,
    FRAME_BPF,
    FRAME_VDSO,
    FRAME_JIT, /* memory without a file */
    FRAME_GUEST,
    FRAME_HYPERVISOR,
    FRAME_OTHER, /* stands for rare stacks that were folded */
    FRAME_KINDS,
} FrameKind;

/* Mappings are equal that have one build id, or without one, one device, inode, generation and
 * path. Copies of a file under other names have dso names of their own, so that counts by dso are
 * those of perf. Memory without a file is that of one process. */
typedef struct FrameMapping {
    FrameKind kind;
    Bytes path, dso; /* as the process mapped it; as perf prints it */
    uint8_t build_id_size;
    uint8_t build_id[FRAME_BUILD_ID_MAX];
    uint32_t major, minor;
    uint64_t inode, generation;
    uint32_t pid; /* of JIT code; else 0 */
    /* KERNEL: the address of _text when it was recorded; MODULE and BPF: where the code began; 0:
     * not known. Other kinds have 0. */
    uint64_t start;
    /* Wall-clock time of the first sample in it; 0: not known. Not part of its identity. */
    uint64_t sampled_ns;
} FrameMapping;

typedef struct Frame {
    uint32_t mapping; /* its number in the FrameTable */
    bool is_return;   /* the address behind a call, not that of an instruction that was running */
    uint64_t address; /* USER and VDSO: the offset in the file; else the virtual address */
} Frame;
