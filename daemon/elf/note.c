/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "elf/note.h"

#include <elf.h>
#include <errno.h>
#include <unistd.h>

#include "util/file.h"
#include "util/macro.h"

/*
 * Anyone may map a file of any content as executable, so the file is treated as hostile: the number
 * of program headers is bounded, as is that of section headers (for files that have notes only in
 * sections), the size of each run of notes, the size of all of them together, and the number of
 * reads. The build id is the note of type NT_GNU_BUILD_ID with the name GNU.
 */

enum {
    ENTRIES_MAX = 1024,         /* the most headers of one kind that are examined */
    ENTRIES_AT_ONCE = 32,       /* read at once */
    RUN_MAX_BYTES = 16 << 10,   /* of one run of notes */
    NOTES_MAX_BYTES = 64 << 10, /* of all notes of a file */
    NOTE_RUNS_MAX = 64,
};

/* Offsets that differ between the two classes of ELF. */
typedef struct Layout {
    uint8_t header_size;
    uint8_t table[2], entry_size[2], n_entries[2]; /* for program headers and for section headers */
    uint8_t entry[2];
    uint8_t offset[2], size[2], align[2]; /* within an entry */
    bool wide;
} Layout;

enum { SEGMENTS, SECTIONS };

#define AT(type, field) ((uint8_t)offsetof(type, field))
#define LAYOUT(N, is_wide)                                                                         \
    {                                                                                              \
        .header_size = sizeof(Elf##N##_Ehdr),                                                      \
        .table = {AT(Elf##N##_Ehdr, e_phoff), AT(Elf##N##_Ehdr, e_shoff)},                         \
        .entry_size = {AT(Elf##N##_Ehdr, e_phentsize), AT(Elf##N##_Ehdr, e_shentsize)},            \
        .n_entries = {AT(Elf##N##_Ehdr, e_phnum), AT(Elf##N##_Ehdr, e_shnum)},                     \
        .entry = {sizeof(Elf##N##_Phdr), sizeof(Elf##N##_Shdr)},                                   \
        .offset = {AT(Elf##N##_Phdr, p_offset), AT(Elf##N##_Shdr, sh_offset)},                     \
        .size = {AT(Elf##N##_Phdr, p_filesz), AT(Elf##N##_Shdr, sh_size)},                         \
        .align = {AT(Elf##N##_Phdr, p_align), AT(Elf##N##_Shdr, sh_addralign)}, .wide = (is_wide), \
    }

static const Layout layouts[] = {LAYOUT(32, false), LAYOUT(64, true)};

typedef struct Elf {
    const ElfSource *source;
    const Layout *layout;
    bool swap;
    unsigned runs_left;
    size_t bytes_left; /* of notes */
    uint8_t header[sizeof(Elf64_Ehdr)];
} Elf;

static uint64_t note_load_word(const Elf *elf, const uint8_t *p) {
    return elf->layout->wide ? load_u64(p, elf->swap) : load_u32(p, elf->swap);
}

int elf_notes_build_id(Bytes notes, size_t align, bool swap, BuildId *ret) {
    Cursor c = cursor_of(notes.data, notes.size, swap);
    size_t mask = align == 8 ? 7 : 3;

    while (!c.failed && cursor_left(&c) >= sizeof(Elf32_Nhdr)) {
        uint32_t name_size = cursor_u32(&c), size = cursor_u32(&c), type = cursor_u32(&c);
        const uint8_t *name, *desc;

        /* The next field is aligned relative to the start of the notes; so is the end, unless it is
         * cut off. */
        name = cursor_take(&c, name_size);
        if (c.failed)
            break;
        (void)cursor_take(&c, -(size_t)(c.at - notes.data) & mask);
        desc = cursor_take(&c, size);
        if (c.failed)
            break;
        if (type == NT_GNU_BUILD_ID && name_size == 4 && memcmp(name, "GNU", 4) == 0) {
            if (size == 0 || size > BUILD_ID_SIZE_MAX)
                return -ENODATA;
            ret->size = size;
            memcpy(ret->bytes, desc, size);
            return 0;
        }
        (void)cursor_take(&c, -(size_t)(c.at - notes.data) & mask);
    }
    return -ENODATA;
}

static int64_t note_read_at(const Elf *elf, uint64_t offset, void *to, size_t n) {
    return elf->source->read(elf->source->userdata, offset, to, n);
}

static int note_try_notes(Elf *elf, uint64_t offset, uint64_t size, uint64_t align, BuildId *ret) {
    uint8_t notes[RUN_MAX_BYTES];
    size_t most = MIN(elf->bytes_left, sizeof(notes));
    int64_t n;

    if (elf->runs_left == 0 || most == 0 || offset > INT64_MAX)
        return -ENODATA;
    elf->runs_left--;
    n = note_read_at(elf, offset, notes, size < most ? (size_t)size : most);
    if (n < 0)
        return (int)n;
    elf->bytes_left -= (size_t)n;
    return elf_notes_build_id((Bytes){.data = notes, .size = (size_t)n}, align == 8 ? 8 : 4,
                              elf->swap, ret);
}

static bool note_is_notes(const Elf *elf, unsigned kind, const uint8_t *entry) {
    /* A program header begins with its type; a section header begins with its name. */
    uint32_t type = load_u32(entry + (kind == SECTIONS ? 4 : 0), elf->swap);

    return type == (kind == SECTIONS ? (uint32_t)SHT_NOTE : (uint32_t)PT_NOTE);
}

/* Examines at most as many entries as the file has. */
static int note_try_entries(Elf *elf, unsigned kind, uint64_t at, size_t n, BuildId *ret) {
    uint8_t entries[ENTRIES_AT_ONCE * sizeof(Elf64_Shdr)];
    const Layout *l = elf->layout;
    int64_t got = at > INT64_MAX ? 0 : note_read_at(elf, at, entries, n * l->entry[kind]);
    int r = -ENODATA;

    if (got < 0)
        return (int)got;
    for (size_t i = 0; r == -ENODATA && (i + 1) * l->entry[kind] <= (size_t)got; i++) {
        const uint8_t *entry = entries + i * l->entry[kind];

        if (note_is_notes(elf, kind, entry))
            r = note_try_notes(elf, note_load_word(elf, entry + l->offset[kind]),
                               note_load_word(elf, entry + l->size[kind]),
                               note_load_word(elf, entry + l->align[kind]), ret);
    }
    return r;
}

static int note_try_table(Elf *elf, unsigned kind, BuildId *ret) {
    const Layout *l = elf->layout;
    uint64_t table = note_load_word(elf, elf->header + l->table[kind]);
    size_t n =
        MIN((size_t)load_u16(elf->header + l->n_entries[kind], elf->swap), (size_t)ENTRIES_MAX);
    int r = -ENODATA;

    if (table == 0 || table > INT64_MAX ||
        load_u16(elf->header + l->entry_size[kind], elf->swap) != l->entry[kind])
        return -ENODATA;
    for (size_t i = 0; r == -ENODATA && i < n; i += ENTRIES_AT_ONCE)
        r = note_try_entries(elf, kind, table + i * l->entry[kind],
                             MIN(n - i, (size_t)ENTRIES_AT_ONCE), ret);
    return r;
}

static int note_open_header(Elf *elf) {
    int64_t n = note_read_at(elf, 0, elf->header, sizeof(elf->header));
    uint8_t class, order;

    if (n < 0)
        return (int)n;
    if (n < (int64_t)sizeof(Elf32_Ehdr) || memcmp(elf->header, ELFMAG, SELFMAG) != 0)
        return -ENOEXEC;
    class = elf->header[EI_CLASS];
    order = elf->header[EI_DATA];
    if ((class != ELFCLASS32 && class != ELFCLASS64) ||
        (order != ELFDATA2LSB && order != ELFDATA2MSB))
        return -ENOEXEC;
    elf->layout = &layouts[class == ELFCLASS64];
    elf->swap = (order == ELFDATA2MSB) != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
    return n < elf->layout->header_size ? -ENOEXEC : 0;
}

int elf_build_id(const ElfSource *source, BuildId *ret) {
    Elf elf = {.source = source, .runs_left = NOTE_RUNS_MAX, .bytes_left = NOTES_MAX_BYTES};
    int r = note_open_header(&elf);

    if (r == 0)
        r = note_try_table(&elf, SEGMENTS, ret);
    if (r == -ENODATA)
        r = note_try_table(&elf, SECTIONS, ret);
    return r;
}

int elf_build_id_of_fd(int fd, BuildId *ret) {
    ElfSource source = {.read = file_read_at, .userdata = &fd};

    return elf_build_id(&source, ret);
}
