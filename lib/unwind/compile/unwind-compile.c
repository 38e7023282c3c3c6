/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "unwind/compile/unwind-compile.h"

#include <errno.h>
#include <unistd.h>

#include "unwind/compile/cfi-run.h"
#include "unwind/compile/elf-code.h"
#include "unwind/compile/table-build.h"
#include "unwind/compile/unwind-limit.h"
#include "util/array.h"
#include "util/macro.h"

/*
 * Makes the table of a file: finds the sections, reads each as a whole, collects its CIEs in the
 * order of their offsets and its FDEs, sorts the FDEs by address, drops those that overlap another,
 * and runs the rest. Where both sections describe the same code, .eh_frame wins, since the program
 * itself relies on it.
 */

enum {
    EH_FRAME,
    DEBUG_FRAME,
    SECTIONS,
    PADDING_MAX = 15, /* bytes between functions, whose rules do not matter */
};

/* An FDE of a section, small, since there may be millions. */
typedef struct Run {
    uint32_t begin, size; /* of its code, from the base on */
    uint32_t at;          /* in the section */
    uint32_t cie;         /* its number, and in the top bit the section */
} Run;

static const uint32_t RUN_SECTION = 1U << 31;

typedef struct Compile {
    const UnwindSource *source;
    ElfCode code;
    CfiSection sections[SECTIONS];
    uint8_t *bytes[SECTIONS];
    CfiCie *cies[SECTIONS];
    size_t n_cies[SECTIONS];
    Run *runs;
    size_t n_runs;
    uint64_t steps;
    TableBuild build;
} Compile;

static void unwind_compile_done(Compile *compile) {
    for (unsigned i = 0; i < SECTIONS; i++) {
        free(compile->bytes[i]);
        free(compile->cies[i]);
    }
    free(compile->runs);
    table_build_done(&compile->build);
}

/* Reads a section. Memory is allocated only if the file is as long as the header claims. */
static int unwind_compile_section(Compile *compile, unsigned i, const ElfFrames *frames) {
    CfiSection *section = &compile->sections[i];
    uint64_t size = frames->size;
    uint8_t last;
    int r;

    if (size == 0)
        return 0;
    if (frames->ends_with_zero)
        size = MIN(size, (uint64_t)UNWIND_SECTION_MAX);
    if (size > UNWIND_SECTION_MAX)
        return -E2BIG;
    if (frames->offset > (uint64_t)INT64_MAX - size)
        return -EBADMSG;
    r = elf_code_bytes(compile->source, frames->offset + size - 1, &last, 1);
    if (r < 0)
        return r;
    compile->bytes[i] = malloc(size);
    if (!compile->bytes[i])
        return -ENOMEM;
    r = elf_code_bytes(compile->source, frames->offset, compile->bytes[i], size);
    *section = (CfiSection){.bytes = {.data = compile->bytes[i], .size = size},
                            .address = frames->address,
                            .is_debug = i == DEBUG_FRAME,
                            .ends_with_zero = frames->ends_with_zero,
                            .machine = compile->code.machine};
    return r;
}

static int unwind_compile_cies(Compile *compile, unsigned i) {
    uint32_t at = 0;
    CfiEntry entry;

    while (cfi_entry_next(&compile->sections[i], &at, &entry)) {
        CfiCie *cie;

        if (!entry.is_cie)
            continue;
        if (compile->n_cies[i] == UNWIND_CIES_MAX)
            return -E2BIG;
        cie = array_grow(&compile->cies[i], &compile->n_cies[i]);
        if (!cie)
            return -ENOMEM;
        *cie = cfi_entry_cie(&compile->sections[i], &entry);
        cfi_run_cie(&compile->sections[i], cie, &compile->steps);
    }
    return 0;
}

static int unwind_compile_compare_cie(const void *key, const void *element) {
    uint32_t at = *(const uint32_t *)key, other = ((const CfiCie *)element)->at;

    return (at > other) - (at < other);
}

/* Collects the runs of code that a section describes, as far as they are in executable segments. */
static int unwind_compile_runs(Compile *compile, unsigned i) {
    const CfiSection *section = &compile->sections[i];
    uint32_t at = 0;
    CfiEntry entry;

    while (cfi_entry_next(section, &at, &entry)) {
        const CfiCie *cie;
        CfiFde fde;
        Run *run;

        if (entry.is_cie || compile->n_cies[i] == 0)
            continue;
        cie = bsearch(&entry.cie, compile->cies[i], compile->n_cies[i], sizeof(*cie),
                      unwind_compile_compare_cie);
        if (!cie || !cie->is_usable || !cfi_entry_fde(section, &entry, cie, &fde) ||
            !elf_code_has(&compile->code, fde.begin, fde.size))
            continue;
        if (compile->n_runs == UNWIND_FDES_MAX)
            return -E2BIG;
        run = array_grow(&compile->runs, &compile->n_runs);
        if (!run)
            return -ENOMEM;
        *run =
            (Run){.begin = (uint32_t)(fde.begin - compile->code.base),
                  .size = (uint32_t)fde.size,
                  .at = entry.at,
                  .cie = (uint32_t)(cie - compile->cies[i]) | (i == DEBUG_FRAME ? RUN_SECTION : 0)};
    }
    return 0;
}

/* Sorts by address; equal ones keep their order. Four rounds of counting take the same time for any
 * input, and no more memory than the runs themselves. */
static int unwind_compile_sort(Compile *compile) {
    _cleanup_free_ Run *other = calloc(compile->n_runs, sizeof(*other));
    Run *from = compile->runs, *to = other;

    if (!other)
        return -ENOMEM;
    for (unsigned shift = 0; shift < 32; shift += 8) {
        size_t starts[257] = {};
        Run *swap = from;

        for (size_t i = 0; i < compile->n_runs; i++)
            starts[(from[i].begin >> shift & 0xff) + 1]++;
        for (unsigned i = 1; i < 256; i++)
            starts[i] += starts[i - 1];
        for (size_t i = 0; i < compile->n_runs; i++)
            to[starts[from[i].begin >> shift & 0xff]++] = from[i];
        from = to;
        to = swap;
    }
    return 0;
}

/* Keeps those of the sorted runs that overlap no other. */
static void unwind_compile_separate(Compile *compile) {
    Run *runs = compile->runs;
    size_t kept = 0;

    for (size_t i = 0; i < compile->n_runs; i++) {
        Run *last = kept > 0 ? &runs[kept - 1] : NULL;

        if (!last || runs[i].begin - last->begin >= last->size)
            runs[kept++] = runs[i];
        else if (last->cie & RUN_SECTION && !(runs[i].cie & RUN_SECTION))
            *last = runs[i];
    }
    compile->n_runs = kept;
}

static int unwind_compile_row(void *userdata, uint64_t pc, const UnwindRule *rule) {
    return table_build_row(userdata, pc, rule);
}

static int unwind_compile_rows(Compile *compile) {
    static const UnwindRule none = {};
    uint64_t end = compile->code.base;
    int r = 0;

    for (size_t i = 0; r == 0 && i < compile->n_runs; i++) {
        const Run *run = &compile->runs[i];
        unsigned which = run->cie & RUN_SECTION ? DEBUG_FRAME : EH_FRAME;
        const CfiCie *cie = &compile->cies[which][run->cie & ~RUN_SECTION];
        uint32_t at = run->at;
        CfiEntry entry;
        CfiFde fde;

        if (!cfi_entry_next(&compile->sections[which], &at, &entry) ||
            !cfi_entry_fde(&compile->sections[which], &entry, cie, &fde))
            return -EBADMSG;
        if (fde.begin - end > PADDING_MAX)
            r = table_build_row(&compile->build, end, &none);
        if (r == 0)
            r = cfi_run_fde(&compile->sections[which], cie, &fde, &compile->steps,
                            unwind_compile_row, &compile->build);
        end = fde.begin + fde.size;
    }
    return r == 0 ? table_build_row(&compile->build, end, &none) : r;
}

static int unwind_compile_file(Compile *compile, Buffer *ret_image) {
    const ElfCode *code = &compile->code;
    uint64_t limit;
    int r = elf_code_read(compile->source, &compile->code);

    if (r == 0)
        r = unwind_compile_section(compile, EH_FRAME, &code->eh_frame);
    if (r == 0)
        r = unwind_compile_section(compile, DEBUG_FRAME, &code->debug_frame);
    for (unsigned i = 0; r == 0 && i < SECTIONS; i++) {
        r = unwind_compile_cies(compile, i);
        if (r == 0)
            r = unwind_compile_runs(compile, i);
    }
    if (r < 0)
        return r;
    if (compile->n_runs == 0)
        return code->has_compressed ? -ENOTSUP : -ENODATA;
    r = unwind_compile_sort(compile);
    if (r < 0)
        return r;
    unwind_compile_separate(compile);
    r = table_build_init(&compile->build, code->machine, code->base, code->span);
    if (r == 0)
        r = unwind_compile_rows(compile);
    limit = UNWIND_TABLE_FREE + UNWIND_TABLE_RATIO * (compile->sections[EH_FRAME].bytes.size +
                                                      compile->sections[DEBUG_FRAME].bytes.size);
    return r == 0 ? table_build_image(&compile->build, code->segments, code->n_segments, limit,
                                      ret_image)
                  : r;
}

int unwind_compile(const UnwindSource *source, Buffer *ret_image) {
    Compile compile = {.source = source, .steps = UNWIND_STEPS_MAX};
    int r = unwind_compile_file(&compile, ret_image);

    unwind_compile_done(&compile);
    return r;
}

static int64_t unwind_compile_read_fd(void *userdata, uint64_t offset, void *to, size_t n) {
    size_t done = 0;

    while (done < n) {
        ssize_t got =
            pread(*(const int *)userdata, (uint8_t *)to + done, n - done, (off_t)(offset + done));

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        if (got == 0)
            break;
        done += (size_t)got;
    }
    return (int64_t)done;
}

int unwind_compile_fd(int fd, Buffer *ret_image) {
    UnwindSource source = {.read = unwind_compile_read_fd, .userdata = &fd};

    return unwind_compile(&source, ret_image);
}
