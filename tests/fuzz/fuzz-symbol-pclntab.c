/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <elf.h>

#include "fuzz.h"
#include "symbol/elf/elf-names.h"
#include "symbol/table/stored-table.h"

/* The table of Go's runtime. The input is put into an ELF file as its .gopclntab, behind code and
 * moduledata. */

enum { CODE = 0x401000, CODE_SIZE = 0x1000 };

static void put_file(const uint8_t *data, size_t size, Buffer *file) {
    static const char names[] = "\0.text\0.gopclntab\0.go.module\0.shstrtab";
    uint64_t at = sizeof(Elf64_Ehdr);
    Elf64_Shdr sections[] = {
        {},
        {.sh_name = 1,
         .sh_type = SHT_NOBITS,
         .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
         .sh_addr = CODE,
         .sh_size = CODE_SIZE},
        {.sh_name = 7, .sh_type = SHT_PROGBITS, .sh_offset = at, .sh_size = size},
        {.sh_name = 18, .sh_type = SHT_PROGBITS, .sh_offset = at, .sh_size = size},
        {.sh_name = 29, .sh_type = SHT_STRTAB, .sh_offset = at + size, .sh_size = sizeof(names)}};
    Elf64_Ehdr header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
                         .e_type = ET_EXEC,
                         .e_machine = EM_X86_64,
                         .e_shoff = at + size + sizeof(names),
                         .e_shentsize = sizeof(Elf64_Shdr),
                         .e_shnum = ARRAY_SIZE(sections),
                         .e_shstrndx = 4};

    buffer_append(file, &header, sizeof(header));
    buffer_append(file, data, size);
    buffer_append(file, names, sizeof(names));
    buffer_append(file, sections, sizeof(sections));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    _cleanup_(elf_file_freep) ElfFile *file = NULL;
    _cleanup_(name_build_done) NameBuild build;
    _cleanup_(buffer_done) Buffer bytes = {};
    StoredTable table;

    name_build_init(&build, NAME_BY_START);
    put_file(data, size, &bytes);
    if (elf_file_new_in_memory(buffer_bytes(&bytes), &file) < 0)
        abort();
    if (elf_names_add(file, &build) == 0 && stored_table_make(&build, &table) == 0)
        stored_table_done(&table);
    return 0;
}
