/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "unwind/compile/elf-code.h"

#include "make-elf.h"
#include "test.h"
#include "unwind/compile/unwind-limit.h"

/* What is found in ELF files that somebody made in order to harm, and in unusual ones. */

static void put_function(MadeElf *elf) {
    made_fde(&elf->eh_frame, false, made_cie(&elf->eh_frame, false), MADE_TEXT, 0x100, NULL, 0);
}

static int compile(MadeElf *elf) {
    _cleanup_(buffer_done) Buffer image = {};
    UnwindTable table;

    return made_compile(elf, &image, &table);
}

/* A file whose bytes at an offset were replaced by a number. */
static int compile_with(uint64_t at, uint64_t value, size_t size) {
    _cleanup_(buffer_done) Buffer image = {};
    _cleanup_(buffer_done) Buffer file = {};
    MadeElf elf = {};

    put_function(&elf);
    made_file(&elf, &file);
    buffer_done(&elf.eh_frame);
    memcpy(file.data + at, &value, size);
    return made_compile_file(&file, &image);
}

#define HEADER(field, value)                                                                       \
    compile_with(offsetof(Elf64_Ehdr, field), (value), sizeof(((Elf64_Ehdr *)NULL)->field))
#define SEGMENT(i, field, value)                                                                   \
    compile_with(sizeof(Elf64_Ehdr) + (i) * sizeof(Elf64_Phdr) + offsetof(Elf64_Phdr, field),      \
                 (value), sizeof(((Elf64_Phdr *)NULL)->field))

TEST(section_is_found_by_its_name) {
    MadeElf elf = {};

    put_function(&elf);
    CHECK_OK(compile(&elf));
}

TEST(section_is_found_without_section_headers) {
    MadeElf elf = {.has_no_sections = true};

    put_function(&elf);
    CHECK_OK(compile(&elf));
    CHECK_OK(HEADER(e_shnum, 0));
    CHECK_OK(HEADER(e_shoff, UINT64_MAX));
    CHECK_OK(HEADER(e_shoff, 1));
    CHECK_OK(HEADER(e_shstrndx, 9999));
    CHECK_OK(HEADER(e_shentsize, 1));
}

TEST(files_that_are_no_programs_of_this_machine_are_refused) {
    CHECK_EQ(HEADER(e_ident[0], 0), -ENOEXEC);
    CHECK_EQ(HEADER(e_ident[EI_CLASS], ELFCLASS32), -ENOEXEC);
    CHECK_EQ(HEADER(e_ident[EI_DATA], ELFDATA2MSB), -ENOEXEC);
    CHECK_EQ(HEADER(e_type, ET_REL), -ENOEXEC);
    CHECK_EQ(HEADER(e_type, ET_CORE), -ENOEXEC);
    CHECK_EQ(HEADER(e_machine, EM_386), -ENOEXEC);
    CHECK_EQ(HEADER(e_phentsize, 0), -ENODATA);
    CHECK_EQ(HEADER(e_phnum, 0), -ENODATA);
    CHECK_EQ(HEADER(e_phnum, UINT16_MAX), -EBADMSG);
    CHECK_EQ(HEADER(e_phoff, UINT64_MAX - 8), -EBADMSG);
    CHECK_EQ(HEADER(e_phoff, INT64_MAX - 8), -EBADMSG);
}

TEST(short_files_are_refused) {
    MadeElf elf = {};
    _cleanup_(buffer_done) Buffer file = {};

    put_function(&elf);
    made_file(&elf, &file);
    buffer_done(&elf.eh_frame);
    for (size_t size = 0; size < file.size; size++) {
        _cleanup_(buffer_done) Buffer image = {};
        Buffer part = {.data = file.data, .size = size};

        /* A file without its section headers, at its end, is one that was made without. */
        if (made_compile_file(&part, &image) == 0)
            CHECK(size >= sizeof(Elf64_Ehdr) + 4 * sizeof(Elf64_Phdr) + 12);
    }
}

TEST(code_must_be_executable_and_span_at_most_4_gib) {
    MadeElf elf = {.second_text = MADE_TEXT + (1ULL << 32)};

    CHECK_EQ(SEGMENT(0, p_flags, PF_R), -ENODATA);
    CHECK_EQ(SEGMENT(0, p_filesz, 0), -ENODATA);
    CHECK_EQ(SEGMENT(0, p_filesz, UINT64_MAX), -EBADMSG);
    CHECK_EQ(SEGMENT(0, p_vaddr, UINT64_MAX - 1), -EBADMSG);
    CHECK_EQ(SEGMENT(0, p_offset, UINT64_MAX - 1), -EBADMSG);
    CHECK_EQ(SEGMENT(0, p_filesz, (1ULL << 32) + 1), -E2BIG);
    CHECK_OK(SEGMENT(0, p_filesz, 1ULL << 32));
    put_function(&elf);
    CHECK_EQ(compile(&elf), -E2BIG);
}

TEST(more_segments_than_the_limit_are_refused) {
    _cleanup_(buffer_done) Buffer file = {};
    _cleanup_(buffer_done) Buffer image = {};
    MadeElf elf = {};
    Elf64_Ehdr *header;

    put_function(&elf);
    made_file(&elf, &file);
    buffer_done(&elf.eh_frame);
    header = (Elf64_Ehdr *)file.data;
    header->e_phoff = file.size;
    header->e_phnum = UNWIND_SEGMENTS_MAX + 1;
    for (unsigned i = 0; i <= UNWIND_SEGMENTS_MAX; i++) {
        Elf64_Phdr load = {
            .p_type = PT_LOAD, .p_flags = PF_X, .p_vaddr = MADE_TEXT, .p_filesz = 0x1000};

        buffer_append(&file, &load, sizeof(load));
    }
    CHECK_EQ(made_compile_file(&file, &image), -E2BIG);
}

TEST(the_size_in_a_section_header_is_bounded_by_the_file) {
    MadeElf elf = {.claimed_size = UNWIND_SECTION_MAX + 1};

    put_function(&elf);
    CHECK_EQ(compile(&elf), -E2BIG);
    elf = (MadeElf){.claimed_size = UNWIND_SECTION_MAX};
    put_function(&elf);
    CHECK_EQ(compile(&elf), -EBADMSG);
    elf = (MadeElf){.claimed_size = UINT64_MAX};
    put_function(&elf);
    CHECK_EQ(compile(&elf), -E2BIG);
}

TEST(compressed_section_is_not_read) {
    MadeElf elf = {.is_compressed = true};

    made_fde(&elf.debug_frame, true, made_cie(&elf.debug_frame, true), MADE_TEXT, 0x100, NULL, 0);
    CHECK_EQ(compile(&elf), -ENOTSUP);
    elf = (MadeElf){};
    CHECK_EQ(compile(&elf), -ENODATA);
    /* What .eh_frame says holds anyway. */
    elf = (MadeElf){.is_compressed = true};
    put_function(&elf);
    made_fde(&elf.debug_frame, true, made_cie(&elf.debug_frame, true), MADE_TEXT, 0x100, NULL, 0);
    CHECK_OK(compile(&elf));
}

static int64_t fail_to_read(void *userdata, uint64_t offset, void *to, size_t n) {
    unsigned *left = userdata;

    (void)to;
    (void)offset;
    return (*left)-- == 0 ? -EIO : (int64_t)n;
}

TEST(an_error_of_reading_is_returned) {
    _cleanup_(buffer_done) Buffer image = {};
    unsigned left = 0;
    UnwindSource source = {.read = fail_to_read, .userdata = &left};

    CHECK_EQ(unwind_compile(&source, &image), -EIO);
}

TEST_MAIN()
