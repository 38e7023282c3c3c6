/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "symbol/line/line-look.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <stdlib.h>

#include "symbol/line/line-limit.h"
#include "symbol/line/line-unit.h"
#include "util/buffer.h"
#include "util/file.h"
#include "util/macro.h"

/*
 * Addresses come sorted, so that the functions of a compilation unit are listed once. From the
 * function that holds an address, its inlined functions are followed inwards; each says where it
 * was called.
 */

enum { DEPTH_MAX = LINES_MAX - 1, FLUSH = 64 << 10 };

typedef struct LineLook {
    Buffer out;
    int to;
    LineUnits units;
    Dwarf_Die chain[LINES_MAX]; /* the function, and what is inlined there, inwards */
    size_t n;
} LineLook;

static const char *line_look_name(Dwarf_Die *die) {
    Dwarf_Attribute attr;
    const char *name = NULL;

    if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attr) ||
        dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attr))
        name = dwarf_formstring(&attr);
    if (!name)
        name = dwarf_diename(die);
    return name && strlen(name) <= LINE_TEXT_MAX ? name : "";
}

/* Follows the blocks and inlined functions that hold the address. */
static void line_look_inwards(LineLook *look, Dwarf_Die *parent, uint64_t address, unsigned depth) {
    Dwarf_Die child;

    if (depth > 4 * DEPTH_MAX || dwarf_child(parent, &child) != 0)
        return;
    do {
        int tag = dwarf_tag(&child);

        if ((tag != DW_TAG_inlined_subroutine && tag != DW_TAG_lexical_block) ||
            dwarf_haspc(&child, address) <= 0)
            continue;
        if (tag == DW_TAG_inlined_subroutine && look->n < LINES_MAX)
            look->chain[look->n++] = child;
        line_look_inwards(look, &child, address, depth + 1);
        return;
    } while (dwarf_siblingof(&child, &child) == 0);
}

static void line_look_put(LineLook *look, const char *function, const char *file, int line) {
    const char *folder = "";
    size_t folder_size, file_size, function_size = strlen(function);
    Dwarf_Attribute attr;
    Dwarf_Die *unit = &look->units.current;

    if (file[0] != '\0' && file[0] != '/') {
        const char *from = dwarf_formstring(dwarf_attr(unit, DW_AT_comp_dir, &attr));

        folder = from ? from : "";
    }
    folder_size = strlen(folder);
    file_size = strlen(file);
    if (folder_size + file_size + 1 > LINE_TEXT_MAX)
        folder_size = file_size = 0;
    buffer_u32(&look->out, (uint32_t)function_size, false);
    buffer_u32(&look->out, (uint32_t)(file_size + (folder_size > 0 ? folder_size + 1 : 0)), false);
    buffer_u32(&look->out, line > 0 ? (uint32_t)line : 0, false);
    buffer_append(&look->out, function, function_size + 1);
    buffer_append(&look->out, folder, folder_size);
    if (folder_size > 0)
        buffer_append(&look->out, "/", 1);
    buffer_append(&look->out, file, file_size);
}

static uint64_t line_look_number(Dwarf_Die *die, unsigned name) {
    Dwarf_Attribute attr;
    Dwarf_Word value;

    return dwarf_formudata(dwarf_attr(die, name, &attr), &value) == 0 ? value : 0;
}

/* Where an inlined function was called. */
static const char *line_look_call(LineLook *look, Dwarf_Die *die, int *ret_line) {
    uint64_t number = line_look_number(die, DW_AT_call_file);
    const char *file = NULL;
    Dwarf_Files *files;
    size_t n;

    *ret_line = (int)line_look_number(die, DW_AT_call_line);
    if (dwarf_getsrcfiles(&look->units.current, &files, &n) == 0 && number < n)
        file = dwarf_filesrc(files, number, NULL, NULL);
    return file ? file : "";
}

static void line_look_one(LineLook *look, uint64_t address) {
    const char *file = NULL;
    Dwarf_Line *source;
    int line = 0;

    look->n = 0;
    if (line_units_find(&look->units, address, &look->chain[0])) {
        look->n = 1;
        line_look_inwards(look, &look->chain[0], address, 0);
    }
    source = look->units.has_current ? dwarf_getsrc_die(&look->units.current, address) : NULL;
    if (source) {
        file = dwarf_linesrc(source, NULL, NULL);
        (void)dwarf_lineno(source, &line);
    }
    buffer_u32(&look->out, (uint32_t)MAX(look->n, (size_t)(source ? 1 : 0)), false);
    if (look->n == 0 && source)
        line_look_put(look, "", file ? file : "", line);
    for (size_t i = look->n; i-- > 0;) {
        line_look_put(look, line_look_name(&look->chain[i]), file ? file : "", line);
        if (i > 0)
            file = line_look_call(look, &look->chain[i], &line);
    }
}

static bool line_look_flush(LineLook *look) {
    bool done = buffer_error(&look->out) == 0 &&
                file_write_all(look->to, look->out.data, look->out.size) == 0;

    buffer_clear(&look->out);
    return done;
}

static Dwarf *line_look_open(int fd) {
    Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);

    return elf ? dwarf_begin_elf(elf, DWARF_C_READ, NULL) : NULL;
}

void line_look(int fd, int alternate, int to, const uint64_t *addresses, size_t n) {
    LineLook *look = calloc(1, sizeof(*look));
    Dwarf *dwarf, *other;

    (void)elf_version(EV_CURRENT);
    dwarf = line_look_open(fd);
    other = alternate >= 0 ? line_look_open(alternate) : NULL;
    if (!look || !dwarf)
        return;
    if (other)
        dwarf_setalt(dwarf, other);
    look->to = to;
    if (!line_units_init(&look->units, dwarf))
        return;
    for (size_t i = 0; i < n; i++) {
        line_look_one(look, addresses[i]);
        if (look->out.size >= FLUSH && !line_look_flush(look))
            return;
    }
    (void)line_look_flush(look);
}
