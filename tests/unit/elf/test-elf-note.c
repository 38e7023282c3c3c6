/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "elf/note.h"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include "test.h"
#include "util/macro.h"

/* Build ids of files of both classes and orders, of damaged ones, and of those that lie. */

static uint8_t file[64 << 10];
static size_t file_size;

static int64_t read_file(void *userdata, uint64_t offset, void *to, size_t n) {
    size_t left = offset < file_size ? file_size - (size_t)offset : 0;

    (void)userdata;
    n = MIN(n, left);
    memcpy(to, file + (left > 0 ? offset : 0), n);
    return (int64_t)n;
}

static const ElfSource source = {.read = read_file};

static size_t put_note(uint8_t *to, uint32_t type, const char *name, uint32_t size, bool swap,
                       size_t align) {
    size_t n = strlen(name) + 1, at = 12 + n;

    store_u32(to, (uint32_t)n, swap);
    store_u32(to + 4, size, swap);
    store_u32(to + 8, type, swap);
    memcpy(to + 12, name, n);
    at = (at + align - 1) & ~(align - 1);
    for (uint32_t i = 0; i < size; i++)
        to[at + i] = (uint8_t)(i + 1);
    return (at + size + align - 1) & ~(align - 1);
}

enum { NOTES_AT = 1024, TABLE_AT = 512 };

/* Two notes, the build id second, in a program header or a section. */
static void make_elf(bool wide, bool swap, bool in_section, size_t align) {
    size_t size = put_note(file + NOTES_AT, NT_GNU_ABI_TAG, "GNU", 16, swap, align);

    size += put_note(file + NOTES_AT + size, NT_GNU_BUILD_ID, "GNU", 20, swap, align);
    memcpy(file, ELFMAG, SELFMAG);
    file[EI_CLASS] = wide ? ELFCLASS64 : ELFCLASS32;
    file[EI_DATA] = swap ? ELFDATA2MSB : ELFDATA2LSB;
    file_size = NOTES_AT + size;
    if (wide) {
        store_u64(file + (in_section ? 40 : 32), TABLE_AT, swap);
        store_u16(file + (in_section ? 58 : 54), in_section ? 64 : 56, swap);
        store_u16(file + (in_section ? 60 : 56), 2, swap);
    } else {
        store_u32(file + (in_section ? 32 : 28), TABLE_AT, swap);
        store_u16(file + (in_section ? 46 : 42), in_section ? 40 : 32, swap);
        store_u16(file + (in_section ? 48 : 44), 2, swap);
    }
    if (wide && in_section) {
        uint8_t *entry = file + TABLE_AT + 64;

        store_u32(entry + 4, SHT_NOTE, swap);
        store_u64(entry + 24, NOTES_AT, swap);
        store_u64(entry + 32, size, swap);
        store_u64(entry + 48, align, swap);
    } else if (wide) {
        uint8_t *entry = file + TABLE_AT + 56;

        store_u32(entry, PT_NOTE, swap);
        store_u64(entry + 8, NOTES_AT, swap);
        store_u64(entry + 32, size, swap);
        store_u64(entry + 48, align, swap);
    } else if (in_section) {
        uint8_t *entry = file + TABLE_AT + 40;

        store_u32(entry + 4, SHT_NOTE, swap);
        store_u32(entry + 16, NOTES_AT, swap);
        store_u32(entry + 20, (uint32_t)size, swap);
        store_u32(entry + 32, (uint32_t)align, swap);
    } else {
        uint8_t *entry = file + TABLE_AT + 32;

        store_u32(entry, PT_NOTE, swap);
        store_u32(entry + 4, NOTES_AT, swap);
        store_u32(entry + 16, (uint32_t)size, swap);
        store_u32(entry + 28, (uint32_t)align, swap);
    }
}

TEST(the_build_id_is_found_in_every_kind_of_file) {
    for (unsigned kind = 0; kind < 16; kind++) {
        BuildId id = {};

        memset(file, 0, sizeof(file));
        make_elf(kind & 1, kind & 2, kind & 4, kind & 8 ? 8 : 4);
        CHECK_OK(elf_build_id(&source, &id));
        CHECK_EQ(id.size, 20U);
        CHECK_EQ(id.bytes[0], 1);
        CHECK_EQ(id.bytes[19], 20);
    }
}

TEST(a_truncated_file_has_no_build_id) {
    size_t whole;
    BuildId id = {.size = 7};

    memset(file, 0, sizeof(file));
    make_elf(true, false, false, 4);
    whole = file_size;
    for (file_size = 0; file_size < whole; file_size++) {
        int r = elf_build_id(&source, &id);

        CHECK(r == -ENODATA || r == -ENOEXEC);
        CHECK_EQ(id.size, 7U);
    }
}

TEST(non_elf_file_is_reported) {
    BuildId id;

    file_size = sizeof(file);
    memset(file, 0, sizeof(file));
    CHECK_EQ(elf_build_id(&source, &id), -ENOEXEC);
    memcpy(file, ELFMAG, SELFMAG);
    CHECK_EQ(elf_build_id(&source, &id), -ENOEXEC);
    file[EI_CLASS] = 3;
    file[EI_DATA] = ELFDATA2LSB;
    CHECK_EQ(elf_build_id(&source, &id), -ENOEXEC);
    file[EI_CLASS] = ELFCLASS64;
    CHECK_EQ(elf_build_id(&source, &id), -ENODATA);
}

static unsigned n_reads;

static int64_t count_reads(void *userdata, uint64_t offset, void *to, size_t n) {
    n_reads++;
    return read_file(userdata, offset, to, n);
}

TEST(reading_stops_in_a_file_of_only_headers) {
    ElfSource counting = {.read = count_reads};
    BuildId id;

    memset(file, 0, sizeof(file));
    make_elf(true, false, false, 4);
    file_size = sizeof(file);
    store_u16(file + 56, UINT16_MAX, false);
    for (size_t i = 0; TABLE_AT + (i + 1) * 56 <= sizeof(file); i++) {
        store_u32(file + TABLE_AT + i * 56, PT_NOTE, false);
        store_u64(file + TABLE_AT + i * 56 + 8, sizeof(file) - 8, false);
        store_u64(file + TABLE_AT + i * 56 + 32, UINT64_MAX, false);
    }
    n_reads = 0;
    CHECK_EQ(elf_build_id(&counting, &id), -ENODATA);
    CHECK(n_reads < 1200);
}

TEST(offsets_beyond_the_file_are_refused) {
    static const uint64_t offsets[] = {UINT64_MAX, UINT64_MAX - 55, INT64_MAX, 1ULL << 63};
    BuildId id;

    for (size_t i = 0; i < ARRAY_SIZE(offsets); i++) {
        memset(file, 0, sizeof(file));
        make_elf(true, false, false, 4);
        store_u64(file + 32, offsets[i], false);
        CHECK_EQ(elf_build_id(&source, &id), -ENODATA);
        make_elf(true, false, false, 4);
        store_u64(file + TABLE_AT + 56 + 8, offsets[i], false);
        CHECK_EQ(elf_build_id(&source, &id), -ENODATA);
    }
}

TEST(only_build_ids_that_fit_into_a_record_are_accepted) {
    uint8_t notes[128];
    BuildId id = {};
    Bytes all = {.data = notes};

    all.size = put_note(notes, NT_GNU_BUILD_ID, "GNU", 32, false, 4);
    CHECK_EQ(elf_notes_build_id(all, 4, false, &id), -ENODATA);
    all.size = put_note(notes, NT_GNU_BUILD_ID, "GNU", 0, false, 4);
    CHECK_EQ(elf_notes_build_id(all, 4, false, &id), -ENODATA);
    all.size = put_note(notes, NT_GNU_BUILD_ID, "Go", 16, false, 4);
    CHECK_EQ(elf_notes_build_id(all, 4, false, &id), -ENODATA);
    all.size = put_note(notes, NT_GNU_BUILD_ID, "GNU", 16, false, 4);
    CHECK_OK(elf_notes_build_id(all, 4, false, &id));
    CHECK_EQ(id.size, 16U);
    store_u32(notes, UINT32_MAX, false);
    CHECK_EQ(elf_notes_build_id(all, 4, false, &id), -ENODATA);
    store_u32(notes, 4, false);
    store_u32(notes + 4, UINT32_MAX - 1, false);
    CHECK_EQ(elf_notes_build_id(all, 4, false, &id), -ENODATA);
    CHECK_EQ(elf_notes_build_id((Bytes){}, 4, false, &id), -ENODATA);
}

/* The build id that readelf prints for a file: 40 hex digits, or nothing. */
static void readelf(const char *path, char ret[64]) {
    char command[512], line[512];
    FILE *f;

    ret[0] = '\0';
    snprintf(command, sizeof(command), "readelf -n %s 2>/dev/null", path);
    f = popen(command, "r");
    while (f && fgets(line, sizeof(line), f))
        (void)sscanf(line, " Build ID: %63s", ret);
    if (f)
        pclose(f);
}

TEST(files_of_this_machine_have_the_ids_that_readelf_shows) {
    static const char *const paths[] = {"/proc/self/exe", "/bin/sh", "/usr/bin/env"};
    char shown[64], ours[64] = "";
    BuildId id;

    for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
        _cleanup_close_ int fd = open(paths[i], O_RDONLY | O_CLOEXEC);
        char real[256];
        ssize_t n = readlink("/proc/self/exe", real, sizeof(real) - 1);

        CHECK(fd >= 0 && n > 0);
        real[n] = '\0';
        readelf(i == 0 ? real : paths[i], shown);
        if (shown[0] == '\0')
            TEST_SKIP("no readelf, or no build ids here");
        CHECK_OK(elf_build_id_of_fd(fd, &id));
        for (size_t k = 0; k < id.size; k++)
            snprintf(ours + 2 * k, 3, "%02x", id.bytes[k]);
        CHECK_STREQ(ours, shown);
    }
}

/* A file without an end, of which every header names notes and every note is empty. */
static uint64_t endless_bytes, endless_reads;

static int64_t read_endless(void *userdata, uint64_t offset, void *to, size_t n) {
    (void)userdata;
    endless_reads++;
    endless_bytes += n;
    memset(to, 0, n);
    for (size_t at = 0; offset >= TABLE_AT && offset < 1 << 20 && at + 56 <= n; at += 56) {
        store_u32((uint8_t *)to + at, PT_NOTE, false);
        store_u64((uint8_t *)to + at + 8, 1ULL << 30, false);
        store_u64((uint8_t *)to + at + 32, 1ULL << 40, false);
    }
    if (offset == 0)
        memcpy(to, file, MIN(n, (size_t)64));
    return (int64_t)n;
}

TEST(endless_notes_are_read_up_to_a_limit) {
    static const ElfSource endless = {.read = read_endless};
    BuildId id;

    memset(file, 0, sizeof(file));
    memcpy(file, ELFMAG, SELFMAG);
    file[EI_CLASS] = ELFCLASS64;
    file[EI_DATA] = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? ELFDATA2MSB : ELFDATA2LSB;
    store_u64(file + 32, TABLE_AT, false);
    store_u64(file + 40, TABLE_AT, false);
    store_u16(file + 54, 56, false);
    store_u16(file + 56, 65535, false);
    store_u16(file + 58, 64, false);
    store_u16(file + 60, 65535, false);
    endless_bytes = endless_reads = 0;
    CHECK_EQ(elf_build_id(&endless, &id), -ENODATA);
    /* Headers of both kinds, and the notes. */
    CHECK(endless_bytes <= 1024 * (56 + 64) + (64 << 10) + 64);
    CHECK(endless_reads <= 2 * 1024 / 32 + 64 + 1);
}

TEST_MAIN()
