/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/*
 * Runs code that is in no file, as a program that compiles while it runs does, at an address that
 * the caller chose, so that a map of it can be written before. It ends by itself.
 *
 * Usage: generated SECONDS ADDRESS
 */

enum { CODE_BYTES = 4096 };

int main(int argc, char **argv) {
#if defined(__x86_64__)
    static const uint8_t spin[] = {0xeb, 0xfe}; /* jmp . */
#else
    static const uint8_t spin[] = {0x00, 0x00, 0x00, 0x14}; /* b . */
#endif
    void *wanted = argc == 3 ? (void *)(uintptr_t)strtoull(argv[2], NULL, 16) : NULL, *code;
    void (*run)(void);

    if (argc != 3)
        return EXIT_FAILURE;
    code = mmap(wanted, CODE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (code != wanted)
        return EXIT_FAILURE;
    memcpy(code, spin, sizeof(spin));
    __builtin___clear_cache(code, (char *)code + CODE_BYTES);
    memcpy(&run, &code, sizeof(run));
    (void)alarm((unsigned)strtoul(argv[1], NULL, 10));
    run();
    return EXIT_SUCCESS;
}
