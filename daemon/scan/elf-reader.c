/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "scan/elf-reader.h"

#include <errno.h>

#include "scan/cache/elf-cache.h"
#include "scan/elf-helper.h"
#include "scan/image-file.h"

/*
 * A file is opened, and what was found in it before is taken as long as the file is the same; else
 * profd-elf reads it. The kernel would read the build id for us (PROCMAP_QUERY), but it reads all
 * the notes that a file claims to have, in one piece that nothing ends. A descriptor is only ever
 * passed on here: the recorder reads no byte of the file.
 */

struct ElfReader {
    ImageOpener *opener;
    ElfHelper *helper;
    ElfCache cache;
};

int elf_reader_new(Keeper *keeper, ProcessReader *processes, int proc, ElfReader **ret) {
    _cleanup_(elf_reader_freep) ElfReader *reader = calloc(1, sizeof(*reader));
    int r;

    if (!reader)
        return -ENOMEM;
    r = image_opener_new(keeper, processes, proc, &reader->opener);
    if (r == 0)
        r = elf_helper_new(keeper, proc, &reader->helper);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(reader);
    return 0;
}

ElfReader *elf_reader_free(ElfReader *reader) {
    if (!reader)
        return NULL;
    elf_helper_free(reader->helper);
    image_opener_free(reader->opener);
    free(reader);
    return NULL;
}

uint64_t elf_reader_ready_ns(const ElfReader *reader) {
    return elf_helper_ready_ns(reader->helper);
}

bool elf_reader_lacks_helper(const ElfReader *reader) {
    return elf_helper_is_missing(reader->helper);
}

uint64_t elf_reader_cpu_ns(const ElfReader *reader) {
    return elf_helper_cpu_ns(reader->helper);
}

/* What never changes as long as the file does not. */
static bool elf_reader_is_final(int r) {
    return r == 0 || r == -ENODATA || r == -ENOEXEC || r == -ECANCELED || r == -ENOMEM;
}

static int elf_reader_read_build_id(ElfReader *reader, const MappedImage *image,
                                    const KeeperFileId *id, int fd, BuildId *ret) {
    const ElfFact *fact = elf_cache_find(&reader->cache, id);
    int r;

    if (fact) {
        *ret = fact->build_id;
        return fact->result;
    }
    r = elf_helper_build_id(reader->helper, fd, ret);
    if (elf_reader_is_final(r))
        elf_cache_add(&reader->cache, id, r, ret);
    if (r == -ETIMEDOUT)
        image_opener_avoid(reader->opener, image);
    return r;
}

int elf_reader_build_id(ElfReader *reader, const MappedImage *image, BuildId *ret) {
    _cleanup_close_ int fd = -1;
    KeeperFileId id;
    int r = image_opener_open(reader->opener, image, &id, &fd);

    return r < 0 ? r : elf_reader_read_build_id(reader, image, &id, fd, ret);
}
