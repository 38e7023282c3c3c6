/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The names of the code of an ELF file. */

#include "symbol/elf/elf-file.h"
#include "symbol/table/name-build.h"

/* How much of its code a file names. */
typedef enum ElfNaming {
    ELF_NAMES_NONE,
    ELF_NAMES_DYNAMIC, /* only what other files may call */
    ELF_NAMES_WHOLE,   /* .symtab, or the table of Go's runtime */
    ELF_NAMES_LINES,   /* and the lines of its source */
} ElfNaming;

/* By the headers alone. */
ElfNaming elf_naming(const ElfFile *file);
/* Adds its symbols: 0, -ENOMEM, or the error of reading. What makes no sense is left out. */
int elf_names_add(const ElfFile *file, NameBuild *build);
/* Adds those of a section of a file that was not linked, as a kernel module, counted from its
 * begin.
 */
int elf_names_add_section(const ElfFile *file, const char *name, NameBuild *build);
/* Adds the segments of code, by which an offset in the file becomes an address. */
void elf_names_add_segments(const ElfFile *file, NameBuild *build);
