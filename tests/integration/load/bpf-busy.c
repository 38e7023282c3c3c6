/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <linux/bpf.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/*
 * Spends its time in a BPF program named `profd_busy`, as many seconds as its argument says: the
 * kernel runs it over and over for one call.
 */

enum { BODY = 3000, REPEAT = 20000 };

static struct bpf_insn code[BODY + 2];

static int busy_bpf(int command, union bpf_attr *attr) {
    return (int)syscall(SYS_bpf, command, attr, sizeof(*attr));
}

static int busy_load(void) {
    union bpf_attr attr = {.prog_type = BPF_PROG_TYPE_SOCKET_FILTER, .insn_cnt = BODY + 2};

    code[0] = (struct bpf_insn){.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = 1};
    for (int i = 1; i <= BODY; i++)
        code[i] = (struct bpf_insn){.code = BPF_ALU64 | BPF_MUL | BPF_K, .imm = 1664525 + i};
    code[BODY + 1] = (struct bpf_insn){.code = BPF_JMP | BPF_EXIT};
    attr.insns = (uintptr_t)code;
    attr.license = (uintptr_t) "Dual BSD/GPL";
    memcpy(attr.prog_name, "profd_busy", sizeof("profd_busy"));
    return busy_bpf(BPF_PROG_LOAD, &attr);
}

int main(int argc, char **argv) {
    static const uint8_t packet[64];
    union bpf_attr attr = {};
    double seconds = 0;
    time_t end;

    if (argc != 2 || sscanf(argv[1], "%lf", &seconds) != 1)
        return 2;
    attr.test.prog_fd = (uint32_t)busy_load();
    if ((int)attr.test.prog_fd < 0) {
        perror("bpf");
        return 1;
    }
    attr.test.data_in = (uintptr_t)packet;
    attr.test.data_size_in = sizeof(packet);
    attr.test.repeat = REPEAT;
    end = time(NULL) + (time_t)seconds;
    while (time(NULL) < end)
        if (busy_bpf(BPF_PROG_TEST_RUN, &attr) < 0) {
            perror("BPF_PROG_TEST_RUN");
            return 1;
        }
    return 0;
}
