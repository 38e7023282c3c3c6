/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "make-program.h"
#include "test.h"

/* Inlined functions and source lines, held against addr2line. */

static const SymbolOptions with_lines = {.local_files = true, .inlined = true};

static const char source_c[] = "volatile int sink;\n"
                               "static inline __attribute__((always_inline)) void deep(int n) {\n"
                               "    sink = n * 77;\n"
                               "}\n"
                               "static inline __attribute__((always_inline)) void middle(int n) {\n"
                               "    for (int i = 0; i < n; i++)\n"
                               "        deep(i);\n"
                               "}\n"
                               "__attribute__((noinline)) void outer(int n) {\n"
                               "    middle(n);\n"
                               "    sink = 3;\n"
                               "}\n"
                               "int main(int argc, char **argv) {\n"
                               "    outer(argc);\n"
                               "    return sink;\n"
                               "}\n";

/* What addr2line -i says of an address: FUNCTION FILE:LINE for each line. */
static void ask_addr2line(const char *file, uint64_t address, char *ret, size_t size) {
    char command[512];
    size_t n;
    FILE *f;

    snprintf(command, sizeof(command),
             "cd %s && addr2line -i -f -e %s %" PRIx64 " | sed 's/ (discriminator.*//' | paste - -",
             made_in(), file, address);
    f = popen(command, "r");
    n = f ? fread(ret, 1, size - 1, f) : 0;
    ret[n] = '\0';
    if (f)
        (void)pclose(f);
}

static void write_lines(const MadeProfile *made, uint32_t frame, char *ret, size_t size) {
    const FrameName *name = &made->names->names[frame];
    size_t n = 0;

    ret[0] = '\0';
    for (uint32_t i = 0; i < name->n; i++) {
        const FrameLine *line = &made->names->lines[name->first + i];

        n += (size_t)snprintf(ret + n, size - n, "%s\t%s:%u\n",
                              (const char *)text_set_get(made->names->texts, line->function).data,
                              (const char *)text_set_get(made->names->texts, line->file).data,
                              line->line);
    }
}

/* Compares each byte of a function; counts the frames with an inlined function. */
static unsigned compare(const char *file, const char *function, size_t size, bool *ret_same) {
    _cleanup_(made_profile_done) MadeProfile made = made_profile();
    FrameMapping mapping = made_mapping(file);
    uint64_t address = made_address(file, function), offset = made_offset_of(file, address);
    unsigned inlined = 0;

    *ret_same = false;
    for (size_t i = 0; i < size; i++)
        (void)made_frame(&made, &mapping, offset + i, false);
    if (made_resolve(&made, &with_lines) < 0)
        return 0;
    *ret_same = true;
    for (uint32_t i = 0; i < size; i++) {
        char expected[2048], found[2048];

        ask_addr2line(file, address + i, expected, sizeof(expected));
        write_lines(&made, i, found, sizeof(found));
        inlined += made.names->names[i].n > 1;
        if (strcmp(expected, found) != 0) {
            printf("# at %#zx: expected %s# found %s", (size_t)i, expected, found);
            *ret_same = false;
        }
    }
    return inlined;
}

TEST(inlined_functions_and_lines_are_those_of_addr2line) {
    bool same;

    made_write("source.c", source_c);
    for (unsigned version = 4; version <= 5; version++) {
        CHECK(made_run("gcc -O2 -gdwarf-%u -Wl,--build-id -o program source.c", version));
        CHECK(compare("program", "outer", 24, &same) > 0);
        CHECK(same);
    }
}

TEST(lines_come_from_the_separate_debug_file) {
    FrameMapping mapping;
    uint64_t offset;
    FrameName name;

    made_write("source.c", source_c);
    CHECK(made_run("gcc -O2 -g -Wl,--build-id -o program source.c && "
                   "objcopy --only-keep-debug program program.debug && cp program whole && "
                   "strip -g program && objcopy --add-gnu-debuglink=program.debug program"));
    mapping = made_mapping("program");
    offset = made_offset("whole", "outer");
    (void)made_look_up(&mapping, offset, &with_lines, &name);
    CHECK_EQ(name.naming, FRAME_NAMED);
    {
        _cleanup_(made_profile_done) MadeProfile made = made_profile();
        uint32_t frame = made_frame(&made, &mapping, offset, false);
        char found[2048];

        CHECK_OK(made_resolve(&made, &with_lines));
        write_lines(&made, frame, found, sizeof(found));
        CHECK(strstr(found, "source.c:"));
        CHECK_STREQ(made_name(&made, frame), "outer");
    }
}

TEST(program_without_debug_information_has_names_all_the_same) {
    FrameMapping mapping;
    FrameName name;

    made_write("source.c", source_c);
    CHECK(made_run("gcc -O2 -Wl,--build-id -o program source.c"));
    mapping = made_mapping("program");
    CHECK_STREQ(made_look_up(&mapping, made_offset("program", "outer"), &with_lines, &name),
                "outer");
    CHECK_EQ(name.n, 1u);
}

/* What was inlined is only in the .dwo file, which the child cannot open. */
TEST(lines_of_split_debug_information_are_those_of_the_program_itself) {
    static const char *const flags[] = {"-gdwarf-4 -gsplit-dwarf", "-gdwarf-5 -gsplit-dwarf"};

    made_write("source.c", source_c);
    for (size_t i = 0; i < 2 * ARRAY_SIZE(flags); i++) {
        _cleanup_(made_profile_done) MadeProfile made = made_profile();
        uint64_t address, whole;
        FrameMapping mapping;

        CHECK(made_run("rm -f *.dwo && gcc -O2 -g -o whole source.c && "
                       "gcc -O2 %s -Wl,--build-id -o program source.c && ls *.dwo",
                       flags[i / 2]));
        CHECK(i % 2 == 0 || made_run("rm *.dwo"));
        mapping = made_mapping("program");
        address = made_address("program", "outer");
        whole = made_address("whole", "outer"); /* addr2line cannot read a program without .dwo */
        for (size_t k = 0; k < 24; k++)
            (void)made_frame(&made, &mapping, made_offset_of("program", address + k), false);
        CHECK_OK(made_resolve(&made, &with_lines));
        for (uint32_t k = 0; k < 24; k++) {
            char expected[2048], found[2048];

            ask_addr2line("whole", whole + k, expected, sizeof(expected));
            write_lines(&made, k, found, sizeof(found));
            CHECK_EQ(made.names->names[k].n, 1u);
            CHECK(strncmp(found, "outer\t", 6) == 0);
            /* The line of the innermost function, whatever its name. */
            *strchr(expected, '\n') = *strchr(found, '\n') = '\0';
            CHECK_STREQ(strchr(found, '\t'), strchr(expected, '\t'));
        }
    }
}

TEST(broken_debug_information_costs_only_the_lines) {
    static const char *const sections[] = {".debug_info", ".debug_abbrev", ".debug_line"};

    made_write("source.c", source_c);
    for (size_t i = 0; i < ARRAY_SIZE(sections); i++) {
        FrameMapping mapping;
        FrameName name;

        CHECK(made_run("gcc -O2 -g -Wl,--build-id -o program source.c && "
                       "objcopy -O binary --only-section=%s --set-section-flags %s=alloc program "
                       "part; seq 1 900 | head -c 3000 >noise && "
                       "objcopy --update-section %s=noise program",
                       sections[i], sections[i], sections[i]));
        mapping = made_mapping("program");
        CHECK_STREQ(made_look_up(&mapping, made_offset("program", "outer"), &with_lines, &name),
                    "outer");
    }
}

TEST_MAIN()
