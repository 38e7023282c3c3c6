/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fuzz.h"
#include "symbol/elf/elf-names.h"
#include "symbol/table/stored-table.h"
#include "symbol/text/demangle.h"

/* An ELF file of a stranger: its build id, its names, and the table that is made of them. */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    _cleanup_(elf_file_freep) ElfFile *file = NULL;
    _cleanup_(name_build_done) NameBuild build;
    _cleanup_(buffer_done) Buffer text = {};
    StoredTable table;
    NameFound found;
    uint64_t address;

    name_build_init(&build, NAME_BY_START);
    if (elf_file_new_in_memory((Bytes){.data = data, .size = size}, &file) < 0)
        return 0;
    (void)elf_file_build_id(file);
    (void)elf_naming(file);
    elf_names_add_segments(file, &build);
    if (elf_names_add(file, &build) < 0 || stored_table_make(&build, &table) < 0)
        return 0;
    for (size_t i = 0; i < table.names.n_rows; i++) {
        uint64_t at = table.names.rows[i].address;

        if (i > 0 && at <= table.names.rows[i - 1].address)
            abort();
        if (name_table_find(&table.names, at, &found) && i < 16)
            demangle(found.name, &text);
    }
    (void)name_table_address(&table.names, size, &address);
    stored_table_done(&table);
    return 0;
}
