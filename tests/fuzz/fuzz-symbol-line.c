/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "symbol/line/line-find.h"

/*
 * Debug information of anybody, which libdw reads in a child, and what a child may answer that the
 * information has taken over. Input: a byte of choice, and an answer (0) or an ELF file. Whatever
 * happens to the child, what comes out of its answer lies within it.
 */

enum { ADDRESSES = 16, STEP = 4 };

static void read_reply(Bytes reply) {
    static SourceLine lines[LINES_MAX];
    Cursor cursor = {.at = reply.data, .end = reply.data + reply.size};
    size_t n;

    while ((n = line_next(&cursor, lines)) > 0) {
        if (n > LINES_MAX)
            abort();
        for (size_t i = 0; i < n; i++) {
            if (lines[i].function.size > LINE_TEXT_MAX || lines[i].file.size > LINE_TEXT_MAX)
                abort();
            fuzz_touch(lines[i].function.data, lines[i].function.size);
            fuzz_touch(lines[i].file.data, lines[i].file.size);
        }
    }
}

static void read_file(const uint8_t *data, size_t size) {
    int fd = memfd_create("debug", MFD_CLOEXEC);
    uint64_t addresses[ADDRESSES] = {};
    Elf64_Ehdr header = {};
    Buffer reply = {};

    memcpy(&header, data, size < sizeof(header) ? size : sizeof(header));
    for (size_t i = 0; i < ADDRESSES; i++)
        addresses[i] = header.e_entry + i * STEP - ADDRESSES / 2 * STEP;
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    if (line_find(fd, -1, addresses, ADDRESSES, &reply) == 0)
        read_reply(buffer_bytes(&reply));
    buffer_done(&reply);
    (void)close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0)
        return 0;
    if (data[0] == 0)
        read_reply((Bytes){.data = data + 1, .size = size - 1});
    else
        read_file(data + 1, size - 1);
    return 0;
}
