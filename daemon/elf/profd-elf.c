/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>

#include "elf/server.h"
#include "util/macro.h"
#include "util/parse.h"

/*
 * profd-elf: the only program of a recording profd that reads the content of ELF files. profd
 * starts it without any rights and passes one descriptor at a time. Exit statuses: 0 the caller is
 * gone or of another version, 1 failed, 2 wrong usage.
 */

enum { STATUS_FAILED = 1, STATUS_USAGE = 2, LARGE_BYTES = 128 << 10 };

int main(int argc, char **argv) {
    static const char option[] = "--socket=";
    uint64_t socket;

    if (argc != 2 || strncmp(argv[1], option, strlen(option)) != 0 ||
        parse_u64(argv[1] + strlen(option), &socket) < 0 || socket > INT_MAX) {
        fputs("profd-elf: profd starts this program; it does nothing when started by hand.\n",
              stderr);
        return STATUS_USAGE;
    }
    /* The memory for one file goes back to the system after that file. */
    (void)mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
    /* Skip what exit() would do: nothing is buffered, and few system calls are still allowed. */
    _exit(elf_sandbox() < 0 || elf_serve((int)socket) < 0 ? STATUS_FAILED : 0);
}
