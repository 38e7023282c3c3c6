/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fuzz.h"
#include "elf/note.h"
#include "util/macro.h"

/*
 * An ELF file that a stranger has mapped, and the same bytes as the notes of a kernel. What is
 * found is written to, so that a size beyond its room shows.
 */

static int64_t read_file(void *userdata, uint64_t offset, void *to, size_t n) {
    const Bytes *file = userdata;
    size_t left = offset < file->size ? file->size - (size_t)offset : 0;

    n = MIN(n, left);
    if (n > 0)
        memcpy(to, file->data + offset, n);
    return (int64_t)n;
}

static void touch(BuildId *id, int r) {
    if (r < 0)
        return;
    if (id->size == 0 || id->size > BUILD_ID_SIZE_MAX)
        abort();
    memset(id->bytes, 0xff, id->size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Bytes file = {.data = data, .size = size};
    ElfSource source = {.read = read_file, .userdata = &file};
    BuildId id = {};

    touch(&id, elf_build_id(&source, &id));
    for (unsigned kind = 0; kind < 4; kind++)
        touch(&id, elf_notes_build_id(file, kind & 1 ? 8 : 4, kind & 2, &id));
    return 0;
}
