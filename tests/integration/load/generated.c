/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "load.h"

/*
 * Runs code that is in no file, as a program that compiles while it runs does, at an address that
 * the caller chose, so that a map of it can be written before. In FOLDER it leaves a jitdump of two
 * functions, of which the first one runs, and maps it as perf's readers expect. It ends by itself.
 *
 * Usage: generated SECONDS ADDRESS [FOLDER]
 */

enum { CODE_BYTES = 4096, FUNCTION_BYTES = 64 };

#if defined(__x86_64__)
static const uint8_t spin[] = {0xeb, 0xfe}; /* jmp . */
enum { MACHINE = EM_X86_64 };
#else
static const uint8_t spin[] = {0x00, 0x00, 0x00, 0x14}; /* b . */
enum { MACHINE = EM_AARCH64 };
#endif

/* As in tools/perf/Documentation/jitdump-specification.txt. */
typedef struct DumpHeader {
    uint32_t magic, version, total_size, machine, pad, pid;
    uint64_t timestamp, flags;
} DumpHeader;

typedef struct DumpLoad {
    uint32_t id, total_size;
    uint64_t timestamp;
    uint32_t pid, tid;
    uint64_t vma, code_addr, code_size, code_index;
} DumpLoad;

static void dump_function(FILE *f, const char *name, const uint8_t *code, uint64_t index) {
    DumpLoad load = {.total_size = (uint32_t)(sizeof(load) + strlen(name) + 1 + FUNCTION_BYTES),
                     .timestamp = load_now_ns(),
                     .pid = (uint32_t)getpid(),
                     .tid = (uint32_t)getpid(),
                     .vma = (uintptr_t)code,
                     .code_addr = (uintptr_t)code,
                     .code_size = FUNCTION_BYTES,
                     .code_index = index};

    (void)fwrite(&load, sizeof(load), 1, f);
    (void)fwrite(name, strlen(name) + 1, 1, f);
    (void)fwrite(code, FUNCTION_BYTES, 1, f);
}

static void dump_code(const char *folder, const uint8_t *code) {
    DumpHeader header = {.magic = 0x4a695444,
                         .version = 1,
                         .total_size = sizeof(header),
                         .machine = MACHINE,
                         .pid = (uint32_t)getpid(),
                         .timestamp = load_now_ns()};
    char path[4096];
    FILE *f;

    snprintf(path, sizeof(path), "%s/jit-%d.dump", folder, (int)getpid());
    f = fopen(path, "w+");
    if (!f)
        load_die("fopen");
    /* The mapping says to readers where the dump is. */
    if (mmap(NULL, CODE_BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(f), 0) == MAP_FAILED)
        load_die("mmap");
    (void)fwrite(&header, sizeof(header), 1, f);
    dump_function(f, "dumped_loop", code, 1);
    dump_function(f, "dumped_idle", code + FUNCTION_BYTES, 2);
    if (fclose(f) != 0)
        load_die("fclose");
}

int main(int argc, char **argv) {
    void *wanted = argc > 2 ? (void *)(uintptr_t)strtoull(argv[2], NULL, 16) : NULL, *code;
    void (*run)(void);

    if (argc < 3)
        return EXIT_FAILURE;
    code = mmap(wanted, CODE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (code != wanted)
        return EXIT_FAILURE;
    memcpy(code, spin, sizeof(spin));
    __builtin___clear_cache(code, (char *)code + CODE_BYTES);
    if (argc > 3)
        dump_code(argv[3], code);
    memcpy(&run, &code, sizeof(run));
    (void)alarm((unsigned)strtoul(argv[1], NULL, 10));
    run();
    return EXIT_SUCCESS;
}
