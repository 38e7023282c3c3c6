/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "symbol/table/stored-table.h"

#include <sys/mman.h>

/* Who has a table need not know whether it lies in memory or in a mapped file. */

int stored_table_make(NameBuild *build, StoredTable *ret) {
    StoredTable table = {};
    int r = name_build_image(build, &table.image);

    buffer_fit(&table.image);
    if (r == 0)
        r = name_table_open(buffer_bytes(&table.image), &table.names);
    if (r < 0)
        stored_table_done(&table);
    else
        *ret = table;
    return r;
}

void stored_table_done(StoredTable *table) {
    buffer_done(&table->image);
    if (table->map)
        (void)munmap(table->map, table->map_size);
    *table = (StoredTable){};
}
