/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The profile that the tests of formats write, and sinks. */

#include <errno.h>

#include "export/export.h"
#include "make-profile.h"
#include "util/buffer.h"

enum { WORK_SAMPLES = 5, WORK_PERIOD = 50, OTHER_SAMPLES = 2, OTHER_PERIOD = 30 };

static inline int keep(const void *data, size_t size, void *arg) {
    buffer_append(arg, data, size);
    return buffer_error(arg);
}

static inline int refuse(const void *data, size_t size, void *arg) {
    (*(unsigned *)arg)++;
    return -EPIPE;
}

static inline ProfileLabel *make_thread(MadeProfile *made, const char *comm, uint32_t pid,
                                        uint32_t tid) {
    ProfileLabel *label = make_label(made);

    label->values[PROFILE_EVENT] = 0;
    label->values[PROFILE_COMM] = make_text(made, comm);
    label->values[PROFILE_PID] = pid;
    label->values[PROFILE_TID] = tid;
    label->values[PROFILE_CPU] = 0;
    return label;
}

/* Two threads of a program, one with an inlined function, one whose name is hostile bytes, a kernel
 * function, a frame without a symbol, and a file that was replaced. */
static inline MadeProfile make_shop(void) {
    MadeProfile made = make_profile(UINT32_MAX);
    uint32_t shop = make_mapping(&made, FRAME_USER, "/usr/bin/shop");
    uint32_t kernel = make_mapping(&made, FRAME_KERNEL, "[kernel.kallsyms]");
    uint32_t old = make_mapping(&made, FRAME_USER, "/usr/lib/old.so");
    uint32_t main = make_frame(&made, shop, 0x1100, FRAME_NAMED, "main", NULL);
    uint32_t work = make_frame(&made, shop, 0x1200, FRAME_NAMED, "work<[u8; 4]>", "add_up");
    uint32_t again = make_frame(&made, shop, 0x1208, FRAME_NAMED, "work<[u8; 4]>", "add_up");
    uint32_t read = make_frame(&made, kernel, 0xffffffff81000010, FRAME_NAMED, "read", NULL);
    uint32_t gone = make_frame(&made, old, 0x10, FRAME_REPLACED, "old.so+0x10 [replaced]", NULL);
    uint32_t bare = make_frame(&made, shop, 0x3000, FRAME_UNNAMED, "shop+0x3000", NULL);

    (void)make_event(&made, "cpu-clock:u", true);
    make_thread(&made, "shop", 10, 10)->values[PROFILE_TIME] = 0;
    make_cell(&made, make_stack(&made, 2, (uint32_t[]){main, work}), 3, 30);
    make_cell(&made, make_stack(&made, 2, (uint32_t[]){main, again}), 2, 20);
    make_thread(&made, "wo\"r\xff;k\\\n", 10, 11)->values[PROFILE_TIME] = 1;
    make_cell(&made, make_stack(&made, 3, (uint32_t[]){main, bare, read}), 1, 10);
    make_cell(&made, make_stack(&made, 1, (uint32_t[]){gone}), 1, 20);
    made.profile->labels[1].values[PROFILE_UNIT] = make_text(&made, "shop.service");
    return made;
}
