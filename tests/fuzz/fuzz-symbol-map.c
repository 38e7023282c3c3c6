/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "symbol/jit/jit-map.h"
#include "symbol/kernel/kernel-symbols.h"
#include "symbol/table/stored-table.h"

/* The names of generated code, as any program can write them to /tmp, and a list of the symbols of
 * a kernel. The rows of the table must be in order. */

static void build_table(NameBuild *build) {
    StoredTable table;

    if (stored_table_make(build, &table) < 0)
        return;
    for (size_t i = 1; i < table.names.n_rows; i++)
        if (table.names.rows[i].address <= table.names.rows[i - 1].address)
            abort();
    stored_table_done(&table);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    int fd = memfd_create("map", MFD_CLOEXEC);

    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    for (unsigned kind = 0; kind < 2; kind++) {
        KernelSymbols kernel = {};
        NameBuild build;

        name_build_init(&build, kind == 0 ? NAME_BY_TIME : NAME_BY_START);
        (void)lseek(fd, 0, SEEK_SET);
        if ((kind == 0 ? jit_map_read(fd, &build) : kernel_symbols_read(fd, &kernel, &build)) == 0)
            build_table(&build);
        name_build_done(&build);
    }
    (void)close(fd);
    return 0;
}
