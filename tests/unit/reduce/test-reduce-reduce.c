/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "reduce/reduce.h"

#include "make-sections.h"
#include "reduce/elf-view.h"
#include "reduce/reduce-limit.h"
#include "test.h"
#include "util/macro.h"

static const uint8_t id_bytes[20] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
static const Bytes build_id = {.data = id_bytes, .size = sizeof(id_bytes)};

static int64_t read_buffer(void *userdata, uint64_t offset, void *to, size_t n) {
    const Buffer *b = userdata;
    size_t left = offset < b->size ? b->size - (size_t)offset : 0;

    n = MIN(n, left);
    if (n > 0)
        memcpy(to, b->data + offset, n);
    return (int64_t)n;
}

static int reduce(Buffer *file, uint64_t limit, Buffer *ret) {
    ReduceSource source = {.read = read_buffer, .userdata = file};

    return reduce_elf(&source, build_id, limit, ret);
}

static uint32_t put_name(Buffer *strings, const char *name) {
    uint32_t at = (uint32_t)strings->size;

    buffer_append(strings, name, strlen(name) + 1);
    return at;
}

/* A table with two functions, and with much that names no code. */
static void add_symbols(MadeProgram *p, uint32_t type) {
    bool is_dynamic = type == SHT_DYNSYM;
    size_t strings = made_program_add(p, is_dynamic ? ".dynstr" : ".strtab", SHT_STRTAB, 0);
    Buffer *s = &p->sections[strings].content, symbols = {};
    size_t table = made_program_add(p, is_dynamic ? ".dynsym" : ".symtab", type, (uint32_t)strings);

    buffer_zero(s, 1);
    made_program_symbol(p, &symbols, 0, 0, 0, 0, 0);
    made_program_symbol(p, &symbols, put_name(s, "first"), STT_FUNC, 1, 0x1010, 0x20);
    made_program_symbol(p, &symbols, put_name(s, "object"), STT_OBJECT, 1, 0x1000, 8);
    made_program_symbol(p, &symbols, put_name(s, "$x"), STT_NOTYPE, 1, 0x1000, 0);
    made_program_symbol(p, &symbols, put_name(s, "undefined"), STT_FUNC, 0, 0, 0);
    made_program_symbol(p, &symbols, put_name(s, "absolute"), STT_FUNC, SHN_ABS, 0x10, 0);
    made_program_symbol(p, &symbols, put_name(s, "nowhere"), STT_FUNC, 77, 0x10, 0);
    made_program_symbol(p, &symbols, UINT32_MAX, STT_FUNC, 1, 0x1040, 0);
    made_program_symbol(p, &symbols, put_name(s, "label"), ELF64_ST_INFO(STB_GLOBAL, STT_NOTYPE), 1,
                        0x1080, 0);
    p->sections[table].content = symbols;
}

/* The functions of a reduced file as "ADDRESS+SIZE:SECTION NAME;". */
static int describe(Buffer *reduced, uint32_t type, char *ret, size_t size) {
    ReduceSource source = {.read = read_buffer, .userdata = reduced};
    _cleanup_(buffer_done) Buffer symbols = {}, strings = {};
    ElfView view;
    int r = elf_view_open(&source, &view);
    size_t table = r == 0 ? elf_view_find_type(&view, type) : 0, n = 0;

    ret[0] = '\0';
    if (table > 0) {
        r = elf_view_read(&view, &view.sections[table], UINT32_MAX, &symbols);
        if (r == 0)
            r = elf_view_read(&view, &view.sections[view.sections[table].link], UINT32_MAX,
                              &strings);
    }
    for (size_t i = elf_symbol_bytes(&view); r == 0 && i < symbols.size;
         i += elf_symbol_bytes(&view)) {
        ElfSymbol s = elf_symbol_load(&view, symbols.data + i);

        n += (size_t)snprintf(ret + n, size - n, "%" PRIx64 "+%" PRIx64 ":%u %s;", s.value, s.size,
                              s.section, (const char *)strings.data + s.name);
    }
    elf_view_done(&view);
    return r;
}

static int make_and_reduce(MadeProgram *p, uint64_t limit, Buffer *ret) {
    _cleanup_(buffer_done) Buffer file = {};
    int r;

    made_program_write(p, &file);
    r = reduce(&file, limit, ret);
    made_program_done(p);
    return r;
}

TEST(functions_of_each_class_and_byte_order_are_kept_as_they_were) {
    for (unsigned i = 0; i < 4; i++) {
        _cleanup_(buffer_done) Buffer reduced = {};
        MadeProgram p;
        char text[512];

        made_program_init(&p, i & 1, i & 2);
        add_symbols(&p, SHT_DYNSYM);
        add_symbols(&p, SHT_SYMTAB);
        CHECK_OK(make_and_reduce(&p, 1 << 20, &reduced));
        CHECK_OK(describe(&reduced, SHT_SYMTAB, text, sizeof(text)));
        CHECK_STREQ(text, "1010+20:1 first;1080+0:1 label;");
        CHECK_OK(describe(&reduced, SHT_DYNSYM, text, sizeof(text)));
        CHECK_STREQ(text, "");
    }
}

TEST(headers_keep_offsets_and_the_note_is_ours) {
    _cleanup_(buffer_done) Buffer reduced = {};
    ReduceSource source = {.read = read_buffer, .userdata = &reduced};
    MadeProgram p;
    ElfView view;
    size_t note;

    made_program_init(&p, false, false);
    add_symbols(&p, SHT_SYMTAB);
    CHECK_OK(make_and_reduce(&p, 1 << 20, &reduced));
    CHECK_OK(elf_view_open(&source, &view));
    CHECK_EQ(view.n_segments, 1);
    CHECK_EQ(view.segments[0].offset, 0x200);
    CHECK_EQ(view.segments[0].vaddr, MADE_PROGRAM_TEXT);
    CHECK_EQ(view.sections[1].type, SHT_NOBITS);
    CHECK_EQ(view.sections[1].address, MADE_PROGRAM_TEXT);
    CHECK(view.sections[1].flags & SHF_EXECINSTR);
    CHECK(bytes_equal_str(elf_view_name(&view, &view.sections[1]), ".text"));
    note = elf_view_find(&view, ".note.gnu.build-id");
    CHECK(note > 0);
    CHECK_EQ(memcmp(reduced.data + view.sections[note].offset + 16, id_bytes, sizeof(id_bytes)), 0);
    elf_view_done(&view);
}

TEST(a_stripped_file_keeps_dynsym_debuglink_and_debugdata) {
    static const uint8_t link[] = "prog.debug\0\0\1\2\3\4", data[] = "\xfd"
                                                                     "7zXZ\0and more";
    _cleanup_(buffer_done) Buffer reduced = {};
    ReduceSource source = {.read = read_buffer, .userdata = &reduced};
    MadeProgram p;
    ElfView view;
    size_t at;
    char text[512];

    made_program_init(&p, false, false);
    add_symbols(&p, SHT_DYNSYM);
    at = made_program_add(&p, ".gnu_debuglink", SHT_PROGBITS, 0);
    buffer_append(&p.sections[at].content, link, 16);
    at = made_program_add(&p, ".gnu_debugdata", SHT_PROGBITS, 0);
    buffer_append(&p.sections[at].content, data, sizeof(data));
    CHECK_OK(make_and_reduce(&p, 1 << 20, &reduced));
    CHECK_OK(describe(&reduced, SHT_DYNSYM, text, sizeof(text)));
    CHECK_STREQ(text, "1010+20:1 first;1080+0:1 label;");
    CHECK_OK(elf_view_open(&source, &view));
    at = elf_view_find(&view, ".gnu_debuglink");
    CHECK_EQ(view.sections[at].size, 16);
    CHECK_EQ(memcmp(reduced.data + view.sections[at].offset, link, 16), 0);
    at = elf_view_find(&view, ".gnu_debugdata");
    CHECK_EQ(view.sections[at].size, sizeof(data));
    CHECK_EQ(memcmp(reduced.data + view.sections[at].offset, data, sizeof(data)), 0);
    elf_view_done(&view);
}

TEST(parts_that_make_no_sense_are_left_out) {
    static const char *const links[] = {"../etc/passwd\0\0\0\1\2\3\4", "\0\0\0\0\1\2\3\4", "cut"};

    for (size_t i = 0; i < ARRAY_SIZE(links); i++) {
        _cleanup_(buffer_done) Buffer reduced = {};
        ReduceSource source = {.read = read_buffer, .userdata = &reduced};
        MadeProgram p;
        ElfView view;
        size_t at;

        made_program_init(&p, false, false);
        add_symbols(&p, SHT_SYMTAB);
        at = made_program_add(&p, ".gnu_debuglink", SHT_PROGBITS, 0);
        buffer_append(&p.sections[at].content, links[i], i == 0 ? 20 : i == 1 ? 8 : 3);
        at = made_program_add(&p, ".gnu_debugdata", SHT_PROGBITS, 0);
        buffer_append(&p.sections[at].content, "no xz", 5);
        CHECK_OK(make_and_reduce(&p, 1 << 20, &reduced));
        CHECK_OK(elf_view_open(&source, &view));
        CHECK_EQ(elf_view_find(&view, ".gnu_debuglink"), 0);
        CHECK_EQ(elf_view_find(&view, ".gnu_debugdata"), 0);
        elf_view_done(&view);
    }
}

TEST(a_file_without_names_and_a_file_that_is_no_program_are_refused) {
    _cleanup_(buffer_done) Buffer reduced = {}, text = {}, core = {};
    MadeProgram p;

    made_program_init(&p, false, false);
    CHECK_EQ(make_and_reduce(&p, 1 << 20, &reduced), -ENODATA);
    buffer_append(&text, "#!/bin/sh\n", 10);
    CHECK_EQ(reduce(&text, 1 << 20, &reduced), -ENOEXEC);
    made_program_init(&p, false, false);
    p.type = ET_CORE;
    made_program_write(&p, &core);
    made_program_done(&p);
    CHECK_EQ(reduce(&core, 1 << 20, &reduced), -ENOEXEC);
    core.size = 20;
    CHECK_EQ(reduce(&core, 1 << 20, &reduced), -ENOEXEC);
    CHECK_EQ(reduced.size, 0);
}

TEST(a_table_beyond_its_limits_gives_way_to_a_smaller_one) {
    static const uint64_t sizes[] = {UINT64_MAX, UINT64_MAX - 100, 1ULL << 40, 1 << 20};

    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        _cleanup_(buffer_done) Buffer reduced = {};
        MadeProgram p;
        char text[512];

        made_program_init(&p, false, false);
        add_symbols(&p, SHT_DYNSYM);
        add_symbols(&p, SHT_SYMTAB);
        /* Of the symbols, then of their strings. */
        p.sections[i % 2 == 0 ? 5 : 4].claimed_size = sizes[i];
        CHECK_OK(make_and_reduce(&p, 1 << 20, &reduced));
        CHECK_OK(describe(&reduced, SHT_DYNSYM, text, sizeof(text)));
        CHECK_STREQ(text, "1010+20:1 first;1080+0:1 label;");
    }
}

TEST(a_result_above_the_limit_is_refused) {
    _cleanup_(buffer_done) Buffer reduced = {};
    MadeProgram p;

    made_program_init(&p, false, false);
    add_symbols(&p, SHT_SYMTAB);
    CHECK_EQ(make_and_reduce(&p, 600, &reduced), -E2BIG);
    CHECK_EQ(reduced.size, 0);
}

/* -- Go ---------------------------------------------------------------------------------------- */

/* .gopclntab with main.main at 0x1100 and main.other at 0x1140, up to 0x1180. */
static void add_go_table(MadeProgram *p, uint32_t magic, bool has_text) {
    static const char names[] = "\0main.main\0main.other";
    bool is_old = magic == 0xfffffffaU;
    size_t section = made_program_add(p, ".gopclntab", SHT_PROGBITS, 0);
    Buffer *b = &p->sections[section].content;
    unsigned words = is_old ? 7 : 8, each = is_old ? 8 : 4;
    uint64_t names_at = 8 + words * 8, functions_at = names_at + 32,
             structs_at = 5 * (uint64_t)each;
    const uint64_t starts[] = {0x1100, 0x1140, 0x1180};
    const uint8_t fixed[] = {0, 0, 1, 8};

    buffer_u32(b, magic, p->swap);
    buffer_append(b, fixed, sizeof(fixed));
    buffer_u64(b, 2, p->swap);
    buffer_u64(b, 0, p->swap);
    if (!is_old)
        buffer_u64(b, has_text ? MADE_PROGRAM_TEXT : 0, p->swap);
    buffer_u64(b, names_at, p->swap);
    for (unsigned i = 0; i < 3; i++)
        buffer_u64(b, 0, p->swap);
    buffer_u64(b, functions_at, p->swap);
    buffer_append(b, names, sizeof(names));
    buffer_zero(b, functions_at - b->size);
    for (unsigned i = 0; i < 3; i++) {
        uint64_t start = is_old ? starts[i] : starts[i] - MADE_PROGRAM_TEXT;
        uint64_t where = structs_at + i * 16;

        if (is_old)
            buffer_u64(b, start, p->swap);
        else
            buffer_u32(b, (uint32_t)start, p->swap);
        if (i < 2 && is_old)
            buffer_u64(b, where, p->swap);
        else if (i < 2)
            buffer_u32(b, (uint32_t)where, p->swap);
    }
    for (unsigned i = 0; i < 2; i++) {
        buffer_zero(b, functions_at + structs_at + i * 16 - b->size);
        buffer_zero(b, each);
        buffer_u32(b, i == 0 ? 1 : 11, p->swap);
    }
}

TEST(a_stripped_go_program_gets_a_table_of_symbols) {
    static const struct {
        uint32_t magic;
        bool has_text;
    } rows[] = {
        {0xfffffffaU, true}, {0xfffffff0U, true}, {0xfffffff1U, true}, {0xfffffff1U, false}};

    for (size_t i = 0; i < 2 * ARRAY_SIZE(rows); i++) {
        _cleanup_(buffer_done) Buffer reduced = {};
        MadeProgram p;
        char text[512];

        made_program_init(&p, false, i % 2);
        add_go_table(&p, rows[i / 2].magic, rows[i / 2].has_text);
        CHECK_OK(make_and_reduce(&p, 1 << 20, &reduced));
        CHECK_OK(describe(&reduced, SHT_SYMTAB, text, sizeof(text)));
        CHECK_STREQ(text, "1100+40:1 main.main;1140+40:1 main.other;");
    }
}

TEST(a_go_table_that_makes_no_sense_gives_no_symbols) {
    /* The magic, the size of a pointer, the number of functions, the place of names, of functions.
     */
    static const struct {
        size_t at;
        uint8_t value;
    } rows[] = {{0, 0xfb}, {7, 3}, {15, 0xff}, {39, 0xff}, {71, 0xff}};

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        _cleanup_(buffer_done) Buffer reduced = {};
        MadeProgram p;

        made_program_init(&p, false, false);
        add_go_table(&p, 0xfffffff1U, true);
        p.sections[2].content.data[rows[i].at] = rows[i].value;
        CHECK_EQ(make_and_reduce(&p, 1 << 20, &reduced), -ENODATA);
    }
}

TEST_MAIN()
