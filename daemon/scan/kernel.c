/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "scan/kernel.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "perfdata/writer/emit.h"
#include "scan/text/kallsyms.h"
#include "scan/module.h"

/*
 * The text of the kernel extends from _text (or _stext, if _text is not a function) to _etext; perf
 * finds its symbols by the name of the map, "[kernel.kallsyms]" and the first symbol, and by the
 * offset, which is the symbol's address. kallsyms is read only once, since the kernel's text does
 * not move and later BPF images are reported by side-band. Modules are not reported and are read
 * each time.
 */

/* PERF_RECORD_KSYMBOL_TYPE_BPF of include/uapi/linux/perf_event.h */
enum { KSYMBOL_TYPE_BPF = 1 };

struct KernelReader {
    const char *root;
    Keeper *keeper;
    bool has_read;
    Buffer text, images; /* records */
};

int kernel_reader_new(const char *root, Keeper *keeper, KernelReader **ret) {
    KernelReader *reader = calloc(1, sizeof(*reader));

    if (!reader)
        return -ENOMEM;
    reader->root = root;
    reader->keeper = keeper;
    *ret = reader;
    return 0;
}

KernelReader *kernel_reader_free(KernelReader *reader) {
    if (!reader)
        return NULL;
    buffer_done(&reader->text);
    buffer_done(&reader->images);
    free(reader);
    return NULL;
}

/* Its headers and notes are in its first page. */
static int64_t kernel_read_vdso(void *userdata, uint64_t offset, void *to, size_t n) {
    size_t size = (size_t)sysconf(_SC_PAGESIZE);

    if (offset >= size)
        return 0;
    n = MIN(n, size - (size_t)offset);
    memcpy(to, (const uint8_t *)userdata + offset, n);
    return (int64_t)n;
}

int kernel_vdso_build_id(BuildId *ret) {
    /* The kernel passes addresses as numbers. */
    void *vdso = (void *)(uintptr_t)getauxval(AT_SYSINFO_EHDR); /* NOLINT */

    /* The vdso of a 32-bit profd is not that of 64-bit processes. */
    if (!vdso || sizeof(void *) < 8)
        return -ENODATA;
    return elf_build_id(&(ElfSource){.read = kernel_read_vdso, .userdata = vdso}, ret);
}

static Bytes kernel_bytes_of(const char *s) {
    return (Bytes){.data = (const uint8_t *)s, .size = strlen(s)};
}

static void kernel_put_map(Buffer *out, PdMmap map, const char *name, const BuildId *build_id) {
    map.pid = UINT32_MAX;
    map.filename = kernel_bytes_of(name);
    map.build_id_size = (uint8_t)build_id->size;
    map.build_id = build_id->bytes;
    if (build_id->size > 0)
        pd_emit_mmap2(out, NULL, PD_MISC_KERNEL, &map);
    else
        pd_emit_mmap(out, NULL, PD_MISC_KERNEL, &map);
}

static void kernel_put_text(KernelReader *k, const Kallsyms *kallsyms) {
    uint64_t start = kallsyms->text ? kallsyms->text : kallsyms->stext;
    BuildId build_id = {};
    char path[PATH_MAX];

    if (start == 0 || kallsyms->etext <= start)
        return;
    snprintf(path, sizeof(path), "%s/sys/kernel/notes", k->root);
    (void)sysfs_build_id(path, &build_id);
    kernel_put_map(
        &k->text, (PdMmap){.start = start, .length = kallsyms->etext - start, .pgoff = start},
        kallsyms->text ? "[kernel.kallsyms]_text" : "[kernel.kallsyms]_stext", &build_id);
}

static void kernel_put_images(KernelReader *k, const Kallsyms *kallsyms) {
    for (size_t i = 0; i < kallsyms->n_images; i++) {
        const BpfImage *image = &kallsyms->images[i];
        PdKsymbol symbol = {
            .addr = image->address,
            .length = (uint32_t)image->length,
            .ksym_type = KSYMBOL_TYPE_BPF,
            .name = {.data = kallsyms->names.data + image->name, .size = image->name_size},
        };

        if (image->length > 0)
            pd_emit_ksymbol(&k->images, NULL, &symbol);
    }
}

static int kernel_read_kallsyms(KernelReader *k) {
    _cleanup_(kallsyms_done) Kallsyms kallsyms = {};
    _cleanup_close_ int fd = -1;
    int r = keeper_open_file(k->keeper, KEEPER_KALLSYMS, &fd);

    if (r == 0)
        r = kallsyms_read(fd, &kallsyms);
    kernel_put_text(k, &kallsyms);
    kernel_put_images(k, &kallsyms);
    /* Addresses that are hidden from us are all zero. */
    return r < 0 ? r : k->text.size > 0 ? 0 : -EACCES;
}

static int kernel_read_modules(KernelReader *k, Buffer *out) {
    _cleanup_(modules_done) Modules modules = {};
    _cleanup_close_ int fd = -1;
    int r = keeper_open_file(k->keeper, KEEPER_MODULES, &fd);

    if (r == -ENOENT)
        return 0;
    if (r == 0)
        r = modules_read(fd, &modules);
    /* Modules without a path still have a name. A module without a build id gets only the name,
     * because perf would take its symbols from whatever file is at the path when the recording is
     * read. */
    (void)modules_identify(k->root, &modules);
    for (size_t i = 0; i < modules.n; i++) {
        const Module *m = &modules.items[i];
        char bracketed[sizeof(m->name) + 2];

        snprintf(bracketed, sizeof(bracketed), "[%s]", m->name);
        if (m->length > 0)
            kernel_put_map(out, (PdMmap){.start = m->start, .length = m->length},
                           m->path && m->build_id.size > 0 ? m->path : bracketed, &m->build_id);
    }
    return r;
}

static void kernel_put_records(Buffer *out, const Buffer *records) {
    buffer_append(out, records->data, records->size);
}

int kernel_reader_read(KernelReader *k, Buffer *out) {
    int r = 0, r_modules;

    if (!k->has_read) {
        buffer_clear(&k->text);
        buffer_clear(&k->images);
        r = kernel_read_kallsyms(k);
        /* Hidden addresses stay hidden; other failures may be temporary. */
        k->has_read = r == 0 || r == -EACCES;
    }
    kernel_put_records(out, &k->text);
    r_modules = kernel_read_modules(k, out);
    kernel_put_records(out, &k->images);
    return r < 0 ? r : r_modules < 0 ? r_modules : buffer_error(out);
}
