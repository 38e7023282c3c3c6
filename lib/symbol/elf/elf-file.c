/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "symbol/elf/elf-file.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/*
 * Files are read and never mapped, since their owner may cut one short while it is looked at. The
 * build id is the GNU note of that type, in a segment of notes or, in a file without segments, in a
 * section; only so many bytes of notes are looked at.
 */

enum { NOTES_MAX = 64 << 10, RUNS_MAX = 64 };

struct ElfFile {
    int fd;
    Bytes bytes;
    ReduceSource source;
    ElfView view;
};

static int64_t elf_file_read(void *userdata, uint64_t offset, void *to, size_t n) {
    const ElfFile *file = userdata;
    ssize_t got;

    if (file->fd < 0) {
        n = offset < file->bytes.size ? MIN(n, file->bytes.size - (size_t)offset) : 0;
        if (n > 0)
            memcpy(to, file->bytes.data + offset, n);
        return (int64_t)n;
    }
    do
        got = pread(file->fd, to, n, (off_t)offset);
    while (got < 0 && errno == EINTR);
    return got < 0 ? -errno : got;
}

static int elf_file_make(int fd, Bytes bytes, ElfFile **ret) {
    _cleanup_(elf_file_freep) ElfFile *file = calloc(1, sizeof(*file));
    int r;

    if (!file) {
        closep(&fd);
        return -ENOMEM;
    }
    file->fd = fd;
    file->bytes = bytes;
    file->source = (ReduceSource){.read = elf_file_read, .userdata = file};
    r = elf_view_open(&file->source, &file->view);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(file);
    return 0;
}

int elf_file_new(int fd, ElfFile **ret) {
    return elf_file_make(fd, (Bytes){}, ret);
}

int elf_file_new_in_memory(Bytes bytes, ElfFile **ret) {
    return elf_file_make(-1, bytes, ret);
}

ElfFile *elf_file_free(ElfFile *file) {
    if (!file)
        return NULL;
    elf_view_done(&file->view);
    closep(&file->fd);
    free(file);
    return NULL;
}

const ElfView *elf_file_view(const ElfFile *file) {
    return &file->view;
}

int elf_file_fd(const ElfFile *file) {
    return file->fd;
}

Bytes elf_file_bytes(const ElfFile *file) {
    return file->bytes;
}

bool elf_notes_find_id(Bytes notes, size_t align, bool swap, ElfBuildId *ret) {
    Cursor c = cursor_of(notes.data, notes.size, swap);

    while (!c.failed && cursor_left(&c) >= sizeof(Elf32_Nhdr)) {
        uint32_t name_size = cursor_u32(&c), size = cursor_u32(&c), type = cursor_u32(&c);
        Bytes name = cursor_bytes(&c, name_size), desc;

        (void)cursor_take(&c, -(size_t)(c.at - notes.data) & (align - 1));
        desc = cursor_bytes(&c, size);
        if (c.failed)
            return false;
        if (type == NT_GNU_BUILD_ID && name.size == 4 && memcmp(name.data, "GNU", 4) == 0 &&
            desc.size > 0 && desc.size <= ELF_BUILD_ID_MAX) {
            ret->size = (uint8_t)desc.size;
            memcpy(ret->bytes, desc.data, desc.size);
            return true;
        }
        (void)cursor_take(&c, MIN(-(size_t)(c.at - notes.data) & (align - 1), cursor_left(&c)));
    }
    return false;
}

static bool elf_file_try_notes(const ElfFile *file, uint64_t offset, uint64_t size, uint64_t align,
                               unsigned *runs, ElfBuildId *ret) {
    _cleanup_free_ uint8_t *bytes = NULL;

    if ((*runs)++ >= RUNS_MAX || size == 0)
        return false;
    size = MIN(size, (uint64_t)NOTES_MAX);
    bytes = malloc((size_t)size);
    return bytes && reduce_read(&file->source, offset, bytes, (size_t)size) == 0 &&
           elf_notes_find_id((Bytes){.data = bytes, .size = (size_t)size}, align == 8 ? 8 : 4,
                             file->view.swap, ret);
}

ElfBuildId elf_file_build_id(const ElfFile *file) {
    const ElfView *view = &file->view;
    ElfBuildId id = {};
    unsigned runs = 0;

    for (size_t i = 0; i < view->n_segments; i++) {
        const ElfSegment *s = &view->segments[i];

        if (s->type == PT_NOTE &&
            elf_file_try_notes(file, s->offset, s->file_size, s->align, &runs, &id))
            return id;
    }
    for (size_t i = 1; i < view->n_sections; i++) {
        const ElfSection *s = &view->sections[i];

        if (s->type == SHT_NOTE &&
            elf_file_try_notes(file, s->offset, s->size, s->align, &runs, &id))
            return id;
    }
    return id;
}
