/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "reduce/reduce.h"

#include <elf.h>
#include <errno.h>

#include "reduce/elf-write.h"
#include "reduce/go-table.h"
#include "reduce/reduce-limit.h"
#include "util/macro.h"

/*
 * Decides what is kept of a file. perf looks into .symtab, and into .dynsym only if there is none,
 * so a .symtab is enough; a stripped Go program gets one made from .gopclntab. A table that exceeds
 * its limits is left out: fewer names are better than none. So is everything that makes no sense.
 */

typedef struct Reduction {
    ElfView view;
    SymbolTable symbols, dynamic;
    Buffer debuglink, debugdata;
    ElfKept kept;
} Reduction;

/* Whether the rest of the file may still be used after this error. */
static bool reduce_may_go_on(int r) {
    return r == -E2BIG || r == -EBADMSG;
}

/* Begins a table anew, without what a failure left in it. */
static void reduce_clear_table(SymbolTable *table) {
    SymbolTable old = *table;

    symbol_table_done(table);
    symbol_table_init(table, old.view, old.limit_bytes);
}

static int reduce_read_table(Reduction *re, uint32_t type, SymbolTable *table,
                             size_t *ret_section) {
    size_t section = elf_view_find_type(&re->view, type);
    int r = section > 0 ? symbol_table_read(table, &re->view.sections[section]) : 0;

    *ret_section = section;
    if (!reduce_may_go_on(r))
        return r;
    reduce_clear_table(table);
    return 0;
}

static int reduce_read_go(Reduction *re) {
    int r = go_table_read(&re->symbols);

    if (!reduce_may_go_on(r))
        return r;
    reduce_clear_table(&re->symbols);
    return 0;
}

static int reduce_read_symbols(Reduction *re) {
    ElfKept *kept = &re->kept;
    int r = reduce_read_table(re, SHT_SYMTAB, &re->symbols, &kept->symbols_section);

    if (r < 0 || !symbol_table_is_empty(&re->symbols))
        return r;
    r = reduce_read_table(re, SHT_DYNSYM, &re->dynamic, &kept->dynamic_section);
    return r < 0 ? r : reduce_read_go(re);
}

/* Reads a section of a small size whole; leaves `ret` empty where that fails for a reason of the
 * file. */
static int reduce_read_section(const Reduction *re, const char *name, uint64_t max,
                               size_t *ret_section, Buffer *ret) {
    size_t section = elf_view_find(&re->view, name);
    int r = section > 0 ? elf_view_read(&re->view, &re->view.sections[section], max, ret) : 0;

    *ret_section = section;
    return reduce_may_go_on(r) ? 0 : r;
}

/* A file name without a folder, and a checksum behind it, written anew. */
static int reduce_read_debuglink(Reduction *re) {
    _cleanup_(buffer_done) Buffer section = {};
    int r = reduce_read_section(re, ".gnu_debuglink", REDUCE_DEBUGLINK_MAX,
                                &re->kept.debuglink_section, &section);
    Cursor c = cursor_of(section.data, section.size, re->view.swap);
    Bytes name = cursor_string(&c);
    uint32_t sum;

    if (r < 0 || section.size == 0)
        return r;
    (void)cursor_take(&c, -(uint64_t)(c.at - section.data) & 3);
    sum = cursor_u32(&c);
    if (c.failed || name.size == 0 || memchr(name.data, '/', name.size))
        return 0;
    buffer_append(&re->debuglink, name.data, name.size);
    buffer_zero(&re->debuglink, 1);
    buffer_zero(&re->debuglink, -re->debuglink.size & 3);
    buffer_u32(&re->debuglink, sum, re->view.swap);
    return buffer_error(&re->debuglink);
}

/* An ELF file that is compressed by xz: its readers unpack it, we only look at its first bytes. */
static int reduce_read_debugdata(Reduction *re) {
    static const uint8_t magic[] = {0xfd, '7', 'z', 'X', 'Z', 0};
    int r = reduce_read_section(re, ".gnu_debugdata", REDUCE_DEBUGDATA_MAX,
                                &re->kept.debugdata_section, &re->debugdata);

    if (re->debugdata.size < sizeof(magic) || memcmp(re->debugdata.data, magic, sizeof(magic)) != 0)
        buffer_clear(&re->debugdata);
    return r;
}

static int reduce_read_parts(Reduction *re) {
    int r = reduce_read_symbols(re);

    if (r == 0)
        r = reduce_read_debuglink(re);
    return r == 0 ? reduce_read_debugdata(re) : r;
}

static bool reduce_is_empty(const Reduction *re) {
    return symbol_table_is_empty(&re->symbols) && symbol_table_is_empty(&re->dynamic) &&
           re->debuglink.size == 0 && re->debugdata.size == 0;
}

static int reduce_write(Reduction *re, Bytes build_id, uint64_t limit_bytes, Buffer *ret) {
    ElfKept *kept = &re->kept;

    kept->view = &re->view;
    kept->build_id = build_id;
    kept->symbols = &re->symbols;
    kept->dynamic = &re->dynamic;
    kept->debuglink = buffer_bytes(&re->debuglink);
    kept->debugdata = buffer_bytes(&re->debugdata);
    return elf_write(kept, limit_bytes, ret);
}

int reduce_elf(const ReduceSource *source, Bytes build_id, uint64_t limit_bytes, Buffer *ret) {
    Reduction re = {};
    int r = elf_view_open(source, &re.view);

    symbol_table_init(&re.symbols, &re.view, limit_bytes);
    symbol_table_init(&re.dynamic, &re.view, limit_bytes);
    if (r == 0)
        r = reduce_read_parts(&re);
    if (r == 0)
        r = reduce_is_empty(&re) ? -ENODATA : reduce_write(&re, build_id, limit_bytes, ret);
    symbol_table_done(&re.symbols);
    symbol_table_done(&re.dynamic);
    buffer_done(&re.debuglink);
    buffer_done(&re.debugdata);
    elf_view_done(&re.view);
    return r;
}
