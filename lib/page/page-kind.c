/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "page/page-kind.h"

/* The names of the kinds, as they are shown in legends and tooltips; scripts look them up. */

/* clang-format off */
const char *const page_kind_names[PAGE_KINDS] = {
    [FRAME_UNKNOWN]    = "unknown",
    [FRAME_USER]       = "user",
    [FRAME_KERNEL]     = "kernel",
    [FRAME_MODULE]     = "module",
    [FRAME_BPF]        = "bpf",
    [FRAME_VDSO]       = "vdso",
    [FRAME_JIT]        = "jit",
    [FRAME_GUEST]      = "guest",
    [FRAME_HYPERVISOR] = "hypervisor",
    [FRAME_OTHER]      = "other",
    [PAGE_INLINED]     = "inlined",
    [PAGE_UNIT]        = "unit",
    [PAGE_CONTAINER]   = "container",
    [PAGE_CGROUP]      = "cgroup",
    [PAGE_COMMAND]     = "command",
    [PAGE_PROCESS]     = "process",
    [PAGE_THREAD]      = "thread",
    [PAGE_CPU]         = "cpu",
};
/* clang-format on */
