/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A body of every type and shape of record that is not a SAMPLE. */

#include "make-record.h"

static inline void make_mmap(Make *m) {
    u32(m, 12);
    u32(m, UINT32_MAX);
    u64(m, 0x400000);
    u64(m, 0x1000);
    u64(m, 0x2000);
    text(m, "/bin/true", 16);
}

static inline void make_mmap2_head(Make *m) {
    u32(m, 12);
    u32(m, 13);
    u64(m, 0x400000);
    u64(m, 0x1000);
    u64(m, 0x2000);
}

static inline void make_mmap2(Make *m) {
    make_mmap2_head(m);
    u32(m, 8);
    u32(m, 1);
    u64(m, 4711);
    u64(m, 99);
    u32(m, 5);
    u32(m, 2);
    text(m, "/bin/\xff", 8);
}

static inline void make_mmap2_build_id(Make *m) {
    make_mmap2_head(m);
    u8(m, 20);
    u8(m, 0);
    u16(m, 0);
    bytes(m, "01234567890123456789", 20);
    u32(m, 7);
    u32(m, 1);
    text(m, "//anon", 8);
}

static inline void make_task(Make *m) {
    u32(m, 20);
    u32(m, 10);
    u32(m, 21);
    u32(m, 11);
    u64(m, 1000000001);
}

static inline void make_comm(Make *m) {
    u32(m, 20);
    u32(m, 21);
    text(m, "sh", 8);
}

static inline void make_two(Make *m) {
    u64(m, 5);
    u64(m, 77);
}

static inline void make_three(Make *m) {
    u64(m, 5);
    u64(m, 6);
    u64(m, 7);
}

static inline void make_read(Make *m) {
    u32(m, 20);
    u32(m, 21);
    u64(m, 1000);
    u64(m, 30);
    u64(m, 8);
}

static inline void make_pid_tid(Make *m) {
    u32(m, 20);
    u32(m, 21);
}

static inline void make_nothing(Make *m) {
    (void)m;
}

static inline void make_namespaces(Make *m) {
    u32(m, 20);
    u32(m, 21);
    u64(m, 2);
    u64(m, 4);
    u64(m, 4026531840);
    u64(m, 4);
    u64(m, 4026531838);
}

static inline void make_ksymbol(Make *m) {
    u64(m, 0xffffffffc0000000);
    u32(m, 0x100);
    u16(m, 1);
    u16(m, 1);
    text(m, "bpf_prog_x", 16);
}

static inline void make_bpf_event(Make *m) {
    u16(m, 2);
    u16(m, 0);
    u32(m, 33);
    bytes(m, "tagtagta", 8);
}

static inline void make_cgroup(Make *m) {
    u64(m, 4242);
    text(m, "/user.slice", 16);
}

static inline void make_text_poke(Make *m) {
    u64(m, 0xffffffff81000000);
    u16(m, 2);
    u16(m, 1);
    bytes(m, "\x0f\x1f\xcc", 3);
    bytes(m, "\0\0\0\0\0\0\0\0\0", 9);
}

static inline void make_deferred(Make *m) {
    u64(m, 0xc00c1e);
    u64(m, 3);
    u64(m, PD_CONTEXT_USER);
    u64(m, 0x400100);
    u64(m, 0x400200);
}

static inline void make_header_attr(Make *m) {
    u32(m, 1);
    u32(m, 64);
    for (unsigned i = 0; i < 7; i++)
        u64(m, i == 3 ? 1 << 18 : 0);
    u64(m, 301);
    u64(m, 302);
}

static inline void make_event_type(Make *m) {
    u64(m, 3);
    text(m, "cycles", 64);
}

static inline void make_tracing_data(Make *m) {
    u32(m, 12345);
}

static inline void make_build_id(Make *m) {
    u32(m, UINT32_MAX);
    bytes(m, "01234567890123456789", 20);
    u8(m, 16);
    u8(m, 0);
    u16(m, 0);
    text(m, "[vdso]", 8);
}

static inline void make_id_index(Make *m) {
    u64(m, 1);
    u64(m, 143);
    u64(m, 2);
    u64(m, 3);
    u64(m, UINT64_MAX);
}

static inline void make_id_index_guest(Make *m) {
    make_id_index(m);
    u64(m, 900);
    u64(m, 1);
}

static inline void make_auxtrace_info(Make *m) {
    u32(m, 1);
    u32(m, 0);
    u64(m, 8);
    u64(m, 0xff);
}

static inline void make_auxtrace(Make *m) {
    u64(m, 0x1000);
    u64(m, 0x2000);
    u64(m, 0x3000);
    u32(m, 1);
    u32(m, UINT32_MAX);
    u32(m, 2);
    u32(m, 0);
}

static inline void make_auxtrace_error_head(Make *m, uint32_t fmt) {
    u32(m, 1);
    u32(m, 5);
    u32(m, 2);
    u32(m, 20);
    u32(m, 21);
    u32(m, fmt);
    u64(m, 0x400000);
}

static inline void make_auxtrace_error_0(Make *m) {
    make_auxtrace_error_head(m, 0);
    text(m, "Overflow", 16);
}

static inline void make_auxtrace_error_2(Make *m) {
    make_auxtrace_error_head(m, 2);
    u64(m, 1000000001);
    text(m, "Overflow", 64);
    u32(m, 900);
    u32(m, 1);
}

static inline void make_thread_map(Make *m) {
    u64(m, 2);
    u64(m, 175);
    text(m, "sleep", 16);
    u64(m, UINT64_MAX);
    text(m, "sixteen letters!", 16);
}

static inline void make_cpu_list(Make *m) {
    u16(m, 0);
    u16(m, 5);
    u16(m, 0xffff);
    u16(m, 0);
    u16(m, 1);
    u16(m, 2);
    u16(m, 9);
}

static inline void make_no_cpus(Make *m) {
    u16(m, 0);
    u16(m, 0);
}

static inline void make_cpu_mask32(Make *m) {
    u16(m, 1);
    u16(m, 2);
    u16(m, 4);
    u32(m, 0x80000001);
    u32(m, 0x5);
}

static inline void make_cpu_mask64(Make *m) {
    u16(m, 1);
    u16(m, 2);
    u16(m, 8);
    u32(m, 0);
    u64(m, 0x8000000000000001);
    u64(m, 0x3);
}

static inline void make_cpu_range(Make *m) {
    u16(m, 2);
    u8(m, 1);
    u8(m, 0);
    u16(m, 0);
    u16(m, 1023);
}

static inline void make_stat_config(Make *m) {
    u64(m, 2);
    u64(m, 1);
    u64(m, 1000);
    u64(m, 77);
    u64(m, 6);
}

static inline void make_stat(Make *m) {
    u64(m, 313);
    u32(m, UINT32_MAX);
    u32(m, 0);
    u64(m, 1);
    u64(m, 2);
    u64(m, 3);
}

static inline void make_stat_round(Make *m) {
    u64(m, 1);
    u64(m, 20649890);
}

static inline void make_update_name(Make *m) {
    u64(m, 2);
    u64(m, 9);
    text(m, "cpu/x/", 8);
}

static inline void make_update_scale(Make *m) {
    u64(m, 1);
    u64(m, 9);
    f64(m, 0.5);
}

static inline void make_update_cpus(Make *m) {
    u64(m, 3);
    u64(m, 9);
    make_cpu_range(m);
}

static inline void make_time_conv_long(Make *m) {
    make_three(m);
    u64(m, 8);
    u64(m, 0xff);
    u8(m, 1);
    u8(m, 0);
    bytes(m, "\0\0\0\0\0\0", 6);
}

static inline void make_feature(Make *m) {
    u64(m, PD_FEATURE_HOSTNAME);
    bytes(m, "abcd", 4);
}

static inline void make_end_of_features(Make *m) {
    u64(m, 32);
}

static inline void make_compressed2(Make *m) {
    u64(m, 3);
    bytes(m, "abc\0\0\0\0\0", 8);
}

static inline void make_bpf_metadata(Make *m) {
    text(m, "bpf_prog_1_x", 256);
    u64(m, 1);
    text(m, "version", 64);
    text(m, "1.2", 256);
}

static inline void make_schedstat(Make *m) {
    u64(m, 99);
    u32(m, 3);
    u16(m, 15);
    u16(m, 1);
    bytes(m, "\x01\x02", 2);
}
