/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Finds the build id of an ELF file that a process maps or has mapped, even if it was deleted. */

#include "elf/note.h"
#include "scan/cache/mapped-image.h"
#include "scan/cache/table-cache.h"
#include "scan/process.h"
#include "scan/symbols-answer.h"

typedef struct ElfReader ElfReader;

/* Borrows all arguments; proc: a descriptor of /proc. */
int elf_reader_new(Keeper *keeper, ProcessReader *processes, int proc, ElfReader **ret);
ElfReader *elf_reader_free(ElfReader *reader);
DEFINE_CLEANUP(ElfReader *, elf_reader_free);

/* 0; -ENODATA: it has none; -EAGAIN: try again after elf_reader_ready_ns(); other errors: it could
 * not be read, or the file is not certain. The version is another one after each change of the
 * file; 0: it is not known yet. */
int elf_reader_build_id(ElfReader *reader, const MappedImage *image, BuildId *ret,
                        uint64_t *ret_version);
/* 0: the file still has the content of this version; 1: it was changed, the last time at about
 * *ret_changed_ns, in CLOCK_MONOTONIC. Other errors: it could not be opened, or it is not certain
 * that it is the file. */
int elf_reader_check(ElfReader *reader, const MappedImage *image, uint64_t version,
                     uint64_t *ret_changed_ns);
/* Makes the unwind table of a file, unless `tables` has it already. Returns the result that is in
 * the answer too. */
int elf_reader_table(ElfReader *reader, const MappedImage *image, TableCache *tables,
                     TableAnswer *ret);
/* Finds what names the code of a file, unless the filter has it already. Returns the result that is
 * in the answer too; a negative one that is final stays until the file changes. */
int elf_reader_symbols(ElfReader *reader, const MappedImage *image, const SymbolsFilter *filter,
                       SymbolsAnswer *ret);
/* Opens the file in which a process names the code that it generates, unless the answer has it
 * already (else its `source` is -1), and reads it, if it was written to since the answer says. */
int elf_reader_code_map(ElfReader *reader, const MappedImage *image, CodeMapAnswer *answer);
uint64_t elf_reader_ready_ns(const ElfReader *reader);
/* Whether profd-elf, which reads the files, cannot run. */
bool elf_reader_lacks_helper(const ElfReader *reader);
/* The CPU time of profd-elf for this reader. */
uint64_t elf_reader_cpu_ns(const ElfReader *reader);
