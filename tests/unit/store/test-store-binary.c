/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "store/binary/binary-store.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "make-store.h"
#include "store/binary/binary-private.h"
#include "test.h"
#include "util/macro.h"

/* A store of symbols in a folder of its own, which may be opened again. */
typedef struct Shelf {
    Place place;
    BinaryStore *binaries;
} Shelf;

static int shelf_open(Shelf *shelf, uint64_t limit) {
    int r = binary_store_new(shelf->place.store, &shelf->binaries);

    shelf->place.store->binaries_max_bytes = limit;
    return r < 0 ? r : binary_store_load(shelf->binaries);
}

static void shelf_reopen(Shelf *shelf) {
    binary_store_free(shelf->binaries);
    shelf->binaries = NULL;
    (void)shelf_open(shelf, shelf->place.store->binaries_max_bytes);
}

static int keep(Shelf *shelf, const char *name, BinaryKind kind, uint32_t owner, size_t bytes,
                const char *path) {
    BinaryNew new = {.kind = kind,
                     .owner = owner,
                     .fd = memfd_create("kept", MFD_CLOEXEC),
                     .bytes = bytes,
                     .path = path};
    int r;

    if (new.fd < 0 || ftruncate(new.fd, (off_t)bytes) < 0)
        abort();
    snprintf(new.name, sizeof(new.name), "%s", name);
    r = binary_store_put(shelf->binaries, &new);
    (void)close(new.fd);
    /* Each is used later than the one before. */
    (void)usleep(2000);
    return r;
}

static int note_name(void *userdata, const BinaryInfo *info) {
    char *names = userdata;
    size_t n = strlen(names);

    snprintf(names + n, 512 - n, "%s/%s/%zu;", info->name, binary_kind_name(info->kind),
             info->n_paths);
    return 0;
}

static const char *names_of(Shelf *shelf) {
    static char names[512];

    names[0] = '\0';
    (void)binary_store_each(shelf->binaries, note_name, names);
    return names;
}

TEST(names_are_digits_and_nothing_else) {
    static const char *const good[] = {"abcd", "00112233445566778899aabbccddeeff00112233", "1-1",
                                       "4194304-1795547504629485"},
                             *const bad[] = {"",
                                             "ab",
                                             "abc",
                                             "ABCD",
                                             "../../etc",
                                             "abcd/x",
                                             "-1",
                                             "1-",
                                             "1-2-3",
                                             "1-x",
                                             "x-1",
                                             "00112233445566778899aabbccddeeff0011223344",
                                             "11111111111-1",
                                             "abcd\n"};
    char name[BINARY_NAME_MAX];
    const uint8_t id[] = {0xab, 0x01, 0xff};

    for (size_t i = 0; i < ARRAY_SIZE(good); i++)
        CHECK(binary_name_is_valid(good[i]));
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        CHECK(!binary_name_is_valid(bad[i]));
    CHECK_OK(binary_name_of_id((Bytes){.data = id, .size = 3}, name));
    CHECK_STREQ(name, "ab01ff");
    CHECK_EQ(binary_name_of_id((Bytes){.data = id, .size = 1}, name), -EINVAL);
    CHECK_EQ(binary_name_of_id((Bytes){.data = id, .size = 21}, name), -EINVAL);
    binary_name_of_map(42, 1795547504629485123, name);
    CHECK_STREQ(name, "42-1795547504629485");
}

TEST(what_is_kept_is_listed_after_a_restart) {
    Shelf shelf = {};

    CHECK_OK(place_init(&shelf.place));
    CHECK_OK(place_open(&shelf.place));
    CHECK_OK(shelf_open(&shelf, 1 << 20));
    CHECK_OK(keep(&shelf, "aabbcc", BINARY_ELF, 7, 5000, "/bin/\xff[2J"));
    CHECK_OK(keep(&shelf, "aabbdd", BINARY_VDSO, 0, 100, "[vdso]"));
    CHECK_OK(keep(&shelf, "7-77", BINARY_MAP, 0, 100, NULL));
    CHECK(!binary_store_knows_path(shelf.binaries, "aabbcc", "/bin/other"));
    CHECK_OK(binary_store_note_path(shelf.binaries, "aabbcc", "/bin/other"));
    CHECK(binary_store_knows_path(shelf.binaries, "aabbcc", "/bin/other"));
    CHECK_STREQ(names_of(&shelf), "7-77/map/0;aabbcc/elf/2;aabbdd/vdso/1;");
    shelf_reopen(&shelf);
    CHECK_STREQ(names_of(&shelf), "7-77/map/0;aabbcc/elf/2;aabbdd/vdso/1;");
    CHECK(binary_store_knows_path(shelf.binaries, "aabbcc", "/bin/other"));
    CHECK_EQ(binary_store_use(shelf.binaries).n, 3);
    binary_store_free(shelf.binaries);
    place_done(&shelf.place);
}

TEST(what_was_not_used_for_the_longest_time_goes_first) {
    Shelf shelf = {};

    CHECK_OK(place_init(&shelf.place));
    CHECK_OK(place_open(&shelf.place));
    CHECK_OK(shelf_open(&shelf, 100 << 10));
    CHECK_OK(keep(&shelf, "aa01", BINARY_ELF, 0, 30 << 10, NULL));
    CHECK_OK(keep(&shelf, "aa02", BINARY_ELF, 0, 30 << 10, NULL));
    CHECK(binary_store_has(shelf.binaries, "aa01", 0));
    CHECK_OK(binary_store_tend(shelf.binaries));
    shelf_reopen(&shelf);
    CHECK_OK(keep(&shelf, "aa03", BINARY_ELF, 0, 30 << 10, NULL));
    CHECK_STREQ(names_of(&shelf), "aa01/elf/0;aa03/elf/0;");
    CHECK_EQ(keep(&shelf, "aa04", BINARY_ELF, 0, 101 << 10, NULL), -EFBIG);
    CHECK_STREQ(names_of(&shelf), "aa01/elf/0;aa03/elf/0;");
    CHECK_EQ(binary_store_use(shelf.binaries).removed, 1);
    shelf.place.store->binaries_max_bytes = 0;
    CHECK_OK(binary_store_tend(shelf.binaries));
    CHECK_STREQ(names_of(&shelf), "");
    CHECK_EQ(binary_store_use(shelf.binaries).bytes, 0);
    binary_store_free(shelf.binaries);
    place_done(&shelf.place);
}

TEST(what_was_last_used_before_the_oldest_sample_goes) {
    Shelf shelf = {};

    CHECK_OK(place_init(&shelf.place));
    CHECK_OK(place_open(&shelf.place));
    CHECK_OK(shelf_open(&shelf, 1 << 20));
    CHECK_OK(keep(&shelf, "aa01", BINARY_ELF, 0, 100, NULL));
    CHECK_OK(binary_store_tend(shelf.binaries));
    CHECK_STREQ(names_of(&shelf), "aa01/elf/0;");
    shelf.place.store->snapshot_oldest_real_ns =
        shelf.binaries->entries[0].used_real_ns + 3599 * 1000000000ULL;
    CHECK_OK(binary_store_tend(shelf.binaries));
    CHECK_STREQ(names_of(&shelf), "aa01/elf/0;");
    shelf.place.store->snapshot_oldest_real_ns += 2 * 1000000000ULL;
    CHECK_OK(binary_store_tend(shelf.binaries));
    CHECK_STREQ(names_of(&shelf), "");
    binary_store_free(shelf.binaries);
    place_done(&shelf.place);
}

TEST(what_roots_file_said_is_not_replaced_and_the_kernel_comes_first) {
    Shelf shelf = {};

    CHECK_OK(place_init(&shelf.place));
    CHECK_OK(place_open(&shelf.place));
    CHECK_OK(shelf_open(&shelf, 1 << 20));
    CHECK_OK(keep(&shelf, "aa01", BINARY_ELF, 1000, 100, NULL));
    CHECK(binary_store_has(shelf.binaries, "aa01", 1001));
    CHECK(!binary_store_has(shelf.binaries, "aa01", 0));
    CHECK_OK(keep(&shelf, "aa01", BINARY_ELF, 0, 200, NULL));
    CHECK(binary_store_has(shelf.binaries, "aa01", 1000));
    CHECK(binary_store_has(shelf.binaries, "aa01", 0));
    CHECK_OK(keep(&shelf, "aa01", BINARY_KALLSYMS, 0, 300, NULL));
    CHECK_EQ(keep(&shelf, "aa01", BINARY_ELF, 0, 100, NULL), -EEXIST);
    CHECK_STREQ(names_of(&shelf), "aa01/kallsyms/0;");
    binary_store_free(shelf.binaries);
    place_done(&shelf.place);
}

TEST(a_copy_that_cannot_be_replaced_stays) {
    Shelf shelf = {};
    BinaryNew cut = {.kind = BINARY_MAP, .bytes = 200, .name = "7-5000000"};
    struct stat st;

    CHECK_OK(place_init(&shelf.place));
    CHECK_OK(place_open(&shelf.place));
    CHECK_OK(shelf_open(&shelf, 1 << 20));
    CHECK_OK(keep(&shelf, "7-5000000", BINARY_MAP, 0, 100, NULL));
    /* It ends early, which fails as a full disk does. */
    cut.fd = memfd_create("cut", MFD_CLOEXEC);
    CHECK_EQ(binary_store_put(shelf.binaries, &cut), -EIO);
    CHECK_OK(fstatat(shelf.binaries->maps, "7-5000000.map", &st, 0));
    CHECK_EQ(st.st_size, 100);
    CHECK(binary_store_has(shelf.binaries, "7-5000000", 0));
    /* A new one leaves nothing. */
    memcpy(cut.name, "8-5000000", sizeof("8-5000000"));
    CHECK_EQ(binary_store_put(shelf.binaries, &cut), -EIO);
    CHECK(fstatat(shelf.binaries->maps, "8-5000000.map", &st, 0) < 0);
    close(cut.fd);
    shelf_reopen(&shelf);
    CHECK_STREQ(names_of(&shelf), "7-5000000/map/0;");
    binary_store_free(shelf.binaries);
    place_done(&shelf.place);
}

TEST(the_map_of_a_process_keeps_its_name_when_clocks_are_set) {
    Shelf shelf = {};
    char name[BINARY_NAME_MAX];

    CHECK_OK(place_init(&shelf.place));
    CHECK_OK(place_open(&shelf.place));
    CHECK_OK(shelf_open(&shelf, 1 << 20));
    CHECK_OK(keep(&shelf, "7-5000000", BINARY_MAP, 0, 100, NULL));
    binary_store_find_map(shelf.binaries, 7, 5900000000, name);
    CHECK_STREQ(name, "7-5000000");
    binary_store_find_map(shelf.binaries, 7, 6100000000, name);
    CHECK_STREQ(name, "7-6100000");
    binary_store_find_map(shelf.binaries, 77, 5000000000, name);
    CHECK_STREQ(name, "77-5000000");
    binary_store_free(shelf.binaries);
    place_done(&shelf.place);
}

TEST_MAIN()
