/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "unwind/compile/elf-code.h"

#include <elf.h>
#include <errno.h>

#include "unwind/compile/cfi-read.h"
#include "unwind/compile/unwind-limit.h"
#include "unwind/unwind-machine.h"
#include "util/macro.h"

/*
 * Executable segments come from program headers. .eh_frame and .debug_frame are found by the names
 * of section headers; a file without them still has the program header of .eh_frame_hdr, which
 * points to .eh_frame. Headers are read a few at a time, and of names as many bytes as ours have.
 */

enum { AT_ONCE = 32 };

typedef struct ElfReader {
    const UnwindSource *source;
    Elf64_Ehdr header;
    unsigned n_loads;
    Elf64_Phdr loads[UNWIND_SEGMENTS_MAX];
    Elf64_Phdr frame_header; /* PT_GNU_EH_FRAME, if p_filesz is not 0 */
    ElfCode *code;
} ElfReader;

int elf_code_bytes(const UnwindSource *source, uint64_t offset, void *to, size_t n) {
    int64_t got;

    if (offset > INT64_MAX || n > INT64_MAX - offset)
        return -EBADMSG;
    got = source->read(source->userdata, offset, to, n);
    if (got < 0)
        return (int)got;
    return (uint64_t)got == n ? 0 : -EBADMSG;
}

static int elf_code_header(ElfReader *reader) {
    Elf64_Ehdr *h = &reader->header;
    int r = elf_code_bytes(reader->source, 0, h, sizeof(*h));
    bool is_big = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;

    if (r < 0)
        return r == -EBADMSG ? -ENOEXEC : r;
    if (memcmp(h->e_ident, ELFMAG, SELFMAG) != 0 || h->e_ident[EI_CLASS] != ELFCLASS64 ||
        h->e_ident[EI_DATA] != (is_big ? ELFDATA2MSB : ELFDATA2LSB) ||
        (h->e_type != ET_EXEC && h->e_type != ET_DYN) || !unwind_machine(h->e_machine))
        return -ENOEXEC;
    reader->code->machine = h->e_machine;
    return 0;
}

static int elf_code_segment(ElfReader *reader, const Elf64_Phdr *p) {
    if (p->p_type == PT_GNU_EH_FRAME)
        reader->frame_header = *p;
    if (p->p_type != PT_LOAD || p->p_filesz == 0)
        return 0;
    if (reader->n_loads == ARRAY_SIZE(reader->loads))
        return -E2BIG;
    if (p->p_filesz > UINT64_MAX - p->p_vaddr || p->p_filesz > UINT64_MAX - p->p_offset)
        return -EBADMSG;
    reader->loads[reader->n_loads++] = *p;
    return 0;
}

static int elf_code_segments(ElfReader *reader) {
    const Elf64_Ehdr *h = &reader->header;
    size_t n = MIN((size_t)h->e_phnum, (size_t)UNWIND_HEADERS_MAX);
    Elf64_Phdr entries[AT_ONCE];
    int r = 0;

    if (h->e_phentsize != sizeof(entries[0]))
        return -ENODATA;
    for (size_t i = 0; r == 0 && i < n; i += AT_ONCE) {
        size_t some = MIN(n - i, (size_t)AT_ONCE);

        if (h->e_phoff > INT64_MAX)
            return -EBADMSG;
        r = elf_code_bytes(reader->source, h->e_phoff + i * sizeof(entries[0]), entries,
                           some * sizeof(entries[0]));
        for (size_t j = 0; r == 0 && j < some; j++)
            r = elf_code_segment(reader, &entries[j]);
    }
    return r;
}

/* The executable segments, and what they span. */
static int elf_code_span(ElfReader *reader) {
    ElfCode *code = reader->code;
    uint64_t first = UINT64_MAX, last = 0;

    for (unsigned i = 0; i < reader->n_loads; i++) {
        const Elf64_Phdr *p = &reader->loads[i];

        if (!(p->p_flags & PF_X))
            continue;
        code->segments[code->n_segments++] =
            (UnwindSegment){.offset = p->p_offset, .size = p->p_filesz, .address = p->p_vaddr};
        first = MIN(first, (uint64_t)p->p_vaddr);
        last = MAX(last, (uint64_t)(p->p_vaddr + p->p_filesz - 1));
    }
    if (code->n_segments == 0)
        return -ENODATA;
    if (last - first > UINT32_MAX)
        return -E2BIG;
    code->base = first;
    code->span = (uint32_t)(last - first);
    return 0;
}

static bool elf_code_is_named(const ElfReader *reader, const Elf64_Shdr *names,
                              const Elf64_Shdr *section, const char *name) {
    char read[sizeof(".debug_frame")] = "";
    size_t n = strlen(name) + 1;

    return n <= sizeof(read) && section->sh_name < names->sh_size &&
           names->sh_offset <= INT64_MAX &&
           elf_code_bytes(reader->source, names->sh_offset + section->sh_name, read, n) == 0 &&
           memcmp(read, name, n) == 0;
}

static void elf_code_section(ElfReader *reader, const Elf64_Shdr *names, const Elf64_Shdr *s) {
    ElfCode *code = reader->code;
    ElfFrames frames = {.offset = s->sh_offset, .size = s->sh_size, .address = s->sh_addr};
    /* Debug files keep the header of .eh_frame and leave out its bytes. */
    bool has_bytes = s->sh_type != SHT_NOBITS && s->sh_type != SHT_NULL && s->sh_size > 0;

    if (!has_bytes)
        return;
    if (s->sh_flags & SHF_ALLOC) {
        if (code->eh_frame.size == 0 && elf_code_is_named(reader, names, s, ".eh_frame"))
            code->eh_frame = frames;
    } else if (elf_code_is_named(reader, names, s, ".debug_frame")) {
        if (s->sh_flags & SHF_COMPRESSED)
            code->has_compressed = true;
        else if (code->debug_frame.size == 0)
            code->debug_frame = frames;
    }
}

/* A file with malformed section headers counts as one without. */
static int elf_code_sections(ElfReader *reader) {
    const Elf64_Ehdr *h = &reader->header;
    size_t n = MIN((size_t)h->e_shnum, (size_t)UNWIND_HEADERS_MAX);
    Elf64_Shdr entries[AT_ONCE], names;
    uint64_t table = h->e_shoff;
    int r;

    if (table == 0 || table > INT64_MAX / 2 || h->e_shentsize != sizeof(entries[0]) ||
        h->e_shstrndx >= n)
        return 0;
    r = elf_code_bytes(reader->source, table + h->e_shstrndx * sizeof(names), &names,
                       sizeof(names));
    for (size_t i = 0; r == 0 && i < n; i += AT_ONCE) {
        size_t some = MIN(n - i, (size_t)AT_ONCE);

        r = elf_code_bytes(reader->source, table + i * sizeof(entries[0]), entries,
                           some * sizeof(entries[0]));
        for (size_t j = 0; r == 0 && j < some; j++)
            elf_code_section(reader, &names, &entries[j]);
    }
    return r == -EBADMSG ? 0 : r;
}

/* .eh_frame by the pointer of .eh_frame_hdr, up to the end of its segment. */
static int elf_code_pointed(ElfReader *reader) {
    const Elf64_Phdr *p = &reader->frame_header;
    uint8_t bytes[12];
    uint64_t address;
    Cursor c;
    int r;

    if (p->p_filesz < sizeof(bytes))
        return 0;
    r = elf_code_bytes(reader->source, p->p_offset, bytes, sizeof(bytes));
    if (r < 0)
        return r == -EBADMSG ? 0 : r;
    c = cursor_of(bytes + 4, sizeof(bytes) - 4, false);
    address = cfi_address(&c, bytes[1], p->p_vaddr + 4);
    if (c.failed || bytes[0] != 1)
        return 0;
    for (unsigned i = 0; i < reader->n_loads; i++) {
        const Elf64_Phdr *load = &reader->loads[i];
        uint64_t skipped = address - load->p_vaddr;

        if (skipped < load->p_filesz)
            reader->code->eh_frame = (ElfFrames){.offset = load->p_offset + skipped,
                                                 .size = load->p_filesz - skipped,
                                                 .address = address,
                                                 .ends_with_zero = true};
    }
    return 0;
}

int elf_code_read(const UnwindSource *source, ElfCode *ret) {
    ElfReader reader = {.source = source, .code = ret};
    int r;

    *ret = (ElfCode){};
    r = elf_code_header(&reader);
    if (r == 0)
        r = elf_code_segments(&reader);
    if (r == 0)
        r = elf_code_span(&reader);
    if (r == 0)
        r = elf_code_sections(&reader);
    if (r == 0 && ret->eh_frame.size == 0)
        r = elf_code_pointed(&reader);
    if (r == 0 && ret->eh_frame.size == 0 && ret->debug_frame.size == 0)
        return ret->has_compressed ? -ENOTSUP : -ENODATA;
    return r;
}

bool elf_code_has(const ElfCode *code, uint64_t begin, uint64_t size) {
    for (unsigned i = 0; i < code->n_segments; i++) {
        uint64_t skipped = begin - code->segments[i].address;

        if (skipped < code->segments[i].size && size <= code->segments[i].size - skipped)
            return true;
    }
    return false;
}
