/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "unwind/compile/unwind-compile.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "test.h"
#include "unwind/unwind-table.h"
#include "util/macro.h"

/*
 * Tables against what readelf says of the same files: at each address of each function that it
 * prints, the rule must have the same CFA and the same places of registers. Expressions readelf
 * prints as "exp", whatever they are; test-unwind-expression has those.
 */

#if defined(__aarch64__)
#define TRIPLET "aarch64-linux-gnu"
#else
#define TRIPLET "x86_64-linux-gnu"
#endif

enum { COLUMNS_MAX = 80, CIES_MAX = 64 };

typedef struct Row {
    uint64_t pc;
    unsigned n; /* cells; the first is the CFA */
    char cells[COLUMNS_MAX][16];
    uint8_t registers[COLUMNS_MAX]; /* of a row of names */
} Row;

typedef struct Comparison {
    UnwindTable table;
    const UnwindMachine *machine;
    Row names, last; /* last.n == 0: none */
    uint64_t end;    /* of the function */
    uint64_t stride; /* between addresses of a row that are compared */
    bool is_cie;
    char cie_ids[CIES_MAX][20]; /* what a function without rows has */
    Row cie_names[CIES_MAX], cies[CIES_MAX];
    unsigned long returns[CIES_MAX], caller; /* the register of the return address */
    unsigned n_cies;
    uint64_t n_rows, n_pcs, n_expressions, n_unknown, n_wrong;
} Comparison;

static uint8_t register_named(const Comparison *c, const char *name, size_t n) {
    static const char *const x86[] = {"rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp",
                                      "ra",  "",    "",    "",    "",    "",    "",    "",
                                      "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};
    static const char *const arm[] = {"sp", "ra"};
    bool is_x86 = c->machine->machine == EM_X86_64;
    const char *const *names = is_x86 ? x86 : arm;
    size_t n_names = is_x86 ? ARRAY_SIZE(x86) : ARRAY_SIZE(arm);

    if (!is_x86 && name[0] == 'x')
        return (uint8_t)strtoul(name + 1, NULL, 10);
    for (size_t i = 0; i < n_names; i++)
        if (strlen(names[i]) == n && memcmp(names[i], name, n) == 0)
            return (uint8_t)(is_x86 ? i : i + 31);
    return UNWIND_NO_REGISTER;
}

static const char *cell_of(const Comparison *c, const Row *row, uint8_t reg) {
    for (unsigned i = 1; i < row->n && i < c->names.n; i++)
        if (c->names.registers[i] == reg)
            return row->cells[i];
    return "u";
}

static bool is_saved_as(const Comparison *c, int16_t saved, const char *cell) {
    if (strcmp(cell, "exp") == 0)
        return saved == UNWIND_UNKNOWN || saved & UNWIND_FROM_FRAME_POINTER;
    switch (cell[0]) {
    case 'u':
        return saved == UNWIND_SAME || saved == UNWIND_UNKNOWN;
    case 's':
        return saved == UNWIND_SAME;
    case 'c':
        return saved == (strcmp(cell, "c+0") == 0
                             ? (int16_t)UNWIND_UNKNOWN
                             : unwind_saved_at_cfa(strtol(cell + 1, NULL, 10)));
    case 'r':
        return saved == unwind_saved_in_register(unwind_register_of_dwarf(
                            c->machine->machine, strtoul(cell + 1, NULL, 10)));
    default:
        return saved == UNWIND_UNKNOWN;
    }
}

static bool is_cfa(const Comparison *c, const UnwindRule *rule, const char *cell) {
    size_t n = strcspn(cell, "+-");

    return rule->kind == UNWIND_OFFSET && rule->base == register_named(c, cell, n) &&
           rule->offset == strtol(cell + n, NULL, 10);
}

static bool is_same(Comparison *c, const Row *row, const UnwindRule *rule) {
    const char *caller = cell_of(c, row, c->machine->ip);

    if (c->caller != (c->machine->machine == EM_X86_64 ? 16 : 30))
        return rule->kind == UNWIND_NONE;
    if (caller[0] == 'u' && (c->machine->link == UNWIND_NO_REGISTER || rule->kind == UNWIND_END))
        return rule->kind == UNWIND_END;
    if (strcmp(row->cells[0], "exp") == 0) {
        c->n_expressions++;
        c->n_unknown += rule->kind == UNWIND_NONE;
        if (rule->kind == UNWIND_NONE || rule->kind == UNWIND_SIGNAL)
            return true;
    } else if (!strchr("cus", caller[0])) {
        return rule->kind == UNWIND_NONE;
    } else if (!is_cfa(c, rule, row->cells[0])) {
        return false;
    }
    if (!is_saved_as(c, rule->saved[0], caller))
        return false;
    for (unsigned i = 1; i < UNWIND_SAVED; i++)
        if (c->machine->saved[i] != UNWIND_NO_REGISTER &&
            !is_saved_as(c, rule->saved[i], cell_of(c, row, c->machine->saved[i])))
            return false;
    return true;
}

/* The row that is complete, at each of its addresses. */
static void compare_row(Comparison *c, uint64_t end) {
    const Row *row = &c->last;
    UnwindRule first;

    if (row->n == 0 || row->pc >= end)
        return;
    c->n_rows++;
    first = unwind_table_find(&c->table, row->pc);
    if (!is_same(c, row, &first) && c->n_wrong++ < 10)
        printf("# %#" PRIx64 " %s: our kind %u register %u offset %d saved %d %d\n", row->pc,
               row->cells[0], first.kind, first.base, first.offset, first.saved[0], first.saved[1]);
    for (uint64_t pc = row->pc; pc < end; pc += c->stride) {
        UnwindRule rule = unwind_table_find(&c->table, pc);

        c->n_pcs++;
        if (memcmp(&rule, &first, sizeof(rule)) != 0 && c->n_wrong++ < 10)
            printf("# %#" PRIx64 ": another rule than at %#" PRIx64 "\n", pc, row->pc);
    }
}

static void end_block(Comparison *c) {
    if (c->is_cie && c->last.n > 0) {
        c->cie_names[c->n_cies - 1] = c->names;
        c->cies[c->n_cies - 1] = c->last;
    } else if (!c->is_cie) {
        compare_row(c, c->end);
    }
    c->last.n = 0;
}

static void begin_function(Comparison *c, const char *cie, uint64_t begin, uint64_t end) {
    c->is_cie = false;
    c->end = end;
    for (unsigned i = 0; i < c->n_cies; i++)
        if (strcmp(c->cie_ids[i], cie) == 0) {
            c->names = c->cie_names[i];
            c->last = c->cies[i];
            c->last.pc = begin;
            c->caller = c->returns[i];
        }
}

static void split(const char *line, Row *row) {
    row->n = 0;
    while (row->n < COLUMNS_MAX) {
        size_t n;

        line += strspn(line, " \n");
        n = strcspn(line, " \n");
        if (n == 0 || n >= sizeof(row->cells[0]))
            return;
        memcpy(row->cells[row->n], line, n);
        row->cells[row->n][n] = '\0';
        /* The number of a register is followed by its name in brackets. */
        row->n += line[0] != '(';
        line += n;
    }
}

static void begin_cie(Comparison *c, const char *line) {
    const char *caller = strstr(line, " ra=");

    end_block(c);
    c->is_cie = true;
    if (c->n_cies == CIES_MAX)
        abort();
    (void)sscanf(line, "%19s", c->cie_ids[c->n_cies]);
    c->returns[c->n_cies] = caller ? strtoul(caller + 4, NULL, 10) : 0;
    c->cies[c->n_cies++].n = 0;
}

static void take_line(Comparison *c, const char *line) {
    uint64_t begin, end;
    char cie[20];

    if (strspn(line, "0123456789abcdef") == 16) {
        begin = strtoull(line, NULL, 16);
        if (!c->is_cie)
            compare_row(c, begin);
        split(line + 16, &c->last);
        c->last.pc = begin;
    } else if (strncmp(line, "   LOC", 6) == 0) {
        split(line + 6, &c->names);
        for (unsigned i = 0; i < c->names.n; i++)
            c->names.registers[i] = register_named(c, c->names.cells[i], strlen(c->names.cells[i]));
        c->last.n = 0;
    } else if (sscanf(line, "%*s %*s %*s FDE cie=%19s pc=%" SCNx64 "..%" SCNx64, cie, &begin,
                      &end) == 3) {
        end_block(c);
        begin_function(c, cie, begin, end);
    } else if (strstr(line, " CIE ")) {
        begin_cie(c, line);
    }
}

static int compile_path(const char *path, Buffer *ret) {
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);

    return fd < 0 ? -errno : unwind_compile_fd(fd, ret);
}

static Comparison comparison; /* large */

/* 0, or -ENOENT: there is no such file. */
static int compare(const char *path, uint64_t stride) {
    _cleanup_(buffer_done) Buffer image = {};
    Comparison *c = &comparison;
    char command[8192], line[1024];
    FILE *readelf;
    int r;

    memset(c, 0, sizeof(*c));
    c->stride = stride;
    r = compile_path(path, &image);
    if (r == 0)
        r = unwind_table_open(buffer_bytes(&image), &c->table);
    if (r < 0)
        return r;
    c->machine = unwind_machine(c->table.header.machine);
    (void)snprintf(command, sizeof(command), "LC_ALL=C readelf -W --debug-dump=frames-interp '%s'",
                   path);
    readelf = popen(command, "re");
    if (!readelf)
        return -errno;
    while (fgets(line, sizeof(line), readelf))
        take_line(c, line);
    end_block(c);
    (void)pclose(readelf); /* it fails where debug files that it would like are missing */
    printf("# %s: %" PRIu64 " rows, %" PRIu64 " addresses, %" PRIu64
           " rows by expressions, of which %" PRIu64 " unknown; %" PRIu64 " differ\n",
           path, c->n_rows, c->n_pcs, c->n_expressions, c->n_unknown, c->n_wrong);
    return 0;
}

#define ROWS_ARE_EQUAL(path, stride, rows_min)                                                     \
    do {                                                                                           \
        if (access(path, R_OK) < 0)                                                                \
            TEST_SKIP("%.200s is not installed", path);                                            \
        CHECK_OK(compare(path, stride));                                                           \
        CHECK_EQ(comparison.n_wrong, 0);                                                           \
        CHECK(comparison.n_rows >= (rows_min));                                                    \
        CHECK(comparison.n_unknown <= comparison.n_rows / 100);                                    \
    } while (0)

TEST(rows_of_the_c_library_are_those_of_readelf) {
    ROWS_ARE_EQUAL("/lib/" TRIPLET "/libc.so.6", 1, 10000);
}

TEST(rows_of_libcrypto_are_those_of_readelf) {
    ROWS_ARE_EQUAL("/usr/lib/" TRIPLET "/libcrypto.so.3", 1, 10000);
}

TEST(rows_of_openssl_are_those_of_readelf) {
    ROWS_ARE_EQUAL("/usr/bin/openssl", 1, 1000);
}

TEST(rows_of_other_installed_programs_are_those_of_readelf) {
    static const char *const paths[] = {"/usr/bin/node", "/usr/bin/perl", "/usr/bin/python3"};

    for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
        if (access(paths[i], R_OK) == 0)
            ROWS_ARE_EQUAL(paths[i], 16, 1000);
}

TEST(rows_of_a_program_with_debug_frame_are_those_of_readelf) {
    const char *build = getenv("PROFD_BUILD");
    char path[4096];

    if (!build)
        TEST_SKIP("PROFD_BUILD is not set");
    (void)snprintf(path, sizeof(path), "%s/tests/unit/unwind-debug-frame", build);
    ROWS_ARE_EQUAL(path, 1, 20);
}

TEST(rows_of_the_c_library_for_aarch64_are_those_of_readelf) {
    ROWS_ARE_EQUAL("/usr/aarch64-linux-gnu/lib/libc.so.6", 1, 5000);
}

TEST(rows_of_the_dynamic_loader_for_aarch64_are_those_of_readelf) {
    ROWS_ARE_EQUAL("/usr/aarch64-linux-gnu/lib/ld-linux-aarch64.so.1", 1, 500);
}

TEST_MAIN()
