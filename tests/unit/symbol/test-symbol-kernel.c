/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "make-program.h"
#include "symbol/kernel/kernel-find.h"
#include "symbol/table/stored-table.h"
#include "test.h"

/* The kernel that runs here, and lists of the symbols of others in a cache. */

static const SymbolOptions local = {.local_files = true};

static const char list[] = "0000000000000000 A fixed_percpu_data\n"
                           "ffffffff81000000 T _stext\n"
                           "ffffffff81000000 T _text\n"
                           "ffffffff81000100 t do_one\n"
                           "ffffffff81000200 T do_two\n"
                           "ffffffff81000300 D some_data\n"
                           "ffffffffc0000000 t of_module\t[ext4]\n";

static uint64_t kallsyms_address(const char *name) {
    char command[256];

    snprintf(command, sizeof(command),
             "awk '$3 == \"%s\" && !$4 { print $1; exit }' /proc/kallsyms", name);
    return made_number(command);
}

static FrameMapping running_kernel(void) {
    FrameMapping m = {.kind = FRAME_KERNEL,
                      .path = {.data = (const uint8_t *)"[kernel.kallsyms]_text", .size = 22},
                      .start = kallsyms_address("_text")};
    uint8_t notes[64] = {};
    FILE *f = fopen("/sys/kernel/notes", "r");

    /* The note of the build id is the first one. */
    if (f && fread(notes, 1, sizeof(notes), f) == sizeof(notes) && notes[8] == 3) {
        m.build_id_size = 20;
        memcpy(m.build_id, notes + 16, 20);
    }
    if (f)
        (void)fclose(f);
    return m;
}

TEST(functions_of_the_running_kernel_are_named) {
    FrameMapping m = running_kernel();
    uint64_t read = kallsyms_address("vfs_read");
    FrameName name;

    if (m.build_id_size == 0 || m.start == 0 || m.start == UINT64_MAX || read == 0)
        TEST_SKIP("the kernel has no build id, or hides its addresses");
    CHECK_STREQ(made_look_up(&m, read + 1, &local, &name), "vfs_read");
    CHECK_EQ(name.start, read);
    CHECK_EQ(name.naming, FRAME_NAMED);
}

TEST(kernel_of_another_boot_is_named_where_it_lay_then) {
    FrameMapping m = running_kernel();
    uint64_t read = kallsyms_address("vfs_read");
    FrameName name;

    if (m.build_id_size == 0 || m.start == 0 || m.start == UINT64_MAX || read == 0)
        TEST_SKIP("the kernel has no build id, or hides its addresses");
    m.start += 0x3000000;
    CHECK_STREQ(made_look_up(&m, read + 0x3000000, &local, &name), "vfs_read");
    CHECK_EQ(name.start, read + 0x3000000);
}

TEST(other_kernel_is_not_named_by_this_one) {
    FrameMapping m = running_kernel();
    FrameName name;

    m.build_id_size = 20;
    m.build_id[3] ^= 0x55;
    CHECK_STREQ(made_look_up(&m, 0xffffffff81000123, &local, &name), "0xffffffff81000123");
    CHECK(name.naming != FRAME_NAMED);
    m.build_id_size = 0;
    CHECK_STREQ(made_look_up(&m, 0xffffffff81000123, &local, &name), "0xffffffff81000123");
    CHECK(name.naming != FRAME_NAMED);
}

static FrameMapping kept_kernel(const char *content) {
    FrameMapping m = {.kind = FRAME_KERNEL, .build_id_size = 20, .start = 0xffffffff9a000000};

    memset(m.build_id, 0xab, 20);
    if (!made_run("mkdir -p cache/.build-id/ab/ababababababababababababababababababab"))
        abort();
    made_write("cache/.build-id/ab/ababababababababababababababababababab/kallsyms", content);
    return m;
}

TEST(list_in_a_cache_names_the_kernel_wherever_it_lay) {
    const char *folder = made_path("cache");
    SymbolOptions options = {.caches = &folder, .n_caches = 1};
    FrameMapping m = kept_kernel(list);
    FrameName name;

    CHECK_STREQ(made_look_up(&m, 0xffffffff9a000180, &options, &name), "do_one");
    CHECK_EQ(name.start, 0xffffffff9a000100);
    CHECK_STREQ(made_look_up(&m, 0xffffffff9a000200, &options, &name), "do_two");
    CHECK_STREQ(made_look_up(&m, 0xffffffffd9000000, &options, &name), "0xffffffffd9000000");
    CHECK_STREQ(made_look_up(&m, 0xffffffff99ffffff, &options, &name), "0xffffffff99ffffff");
    m.start = 0;
    CHECK_STREQ(made_look_up(&m, 0xffffffff9a000180, &options, &name), "0xffffffff9a000180");
}

TEST(list_with_hidden_addresses_names_nothing) {
    const char *folder = made_path("cache");
    SymbolOptions options = {.caches = &folder, .n_caches = 1};
    FrameMapping m = kept_kernel("0000000000000000 T _text\n0000000000000000 T do_one\n");
    FrameName name;

    CHECK_STREQ(made_look_up(&m, 0xffffffff9a000180, &options, &name), "0xffffffff9a000180");
    CHECK(name.naming != FRAME_NAMED);
}

static int find_module(const char *name, uint64_t start, bool same_boot, StoredTable *ret) {
    FindOptions options = {.root = made_in(), .local_files = true, .local_processes = same_boot};
    Bytes bytes = {.data = (const uint8_t *)name, .size = strlen(name)};
    NameBuild build;
    int r;

    name_build_init(&build, NAME_BY_START);
    r = kernel_find_module(&options, bytes, start, &build);
    if (r == 0)
        r = stored_table_make(&build, ret);
    name_build_done(&build);
    return r;
}

TEST(module_is_named_if_it_is_still_loaded_where_it_was) {
    static const char *const names[] = {"[nf_tables]", "/lib/modules/6.1/net/nf-tables.ko.xz"};
    StoredTable table = {};
    NameFound found;

    CHECK(made_run("mkdir -p proc"));
    made_write("proc/kallsyms", "ffffffff81000000 T _text\n"
                                "ffffffffc0200010 t nft_init\t[nf_tables]\n"
                                "ffffffffc0200100 t nft_eval\t[nf_tables]\n"
                                "ffffffffc0300000 t other\t[ext4]\n");
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        CHECK_OK(find_module(names[i], 0xffffffffc0200000, true, &table));
        CHECK(name_table_find(&table.names, 0x120, &found));
        CHECK_STREQ((const char *)found.name.data, "nft_eval");
        CHECK_EQ(found.start, 0x100u);
        stored_table_done(&table);
    }
    CHECK_EQ(find_module("[nf_tables]", 0xffffffffc0200000, false, &table), -ENOENT);
    CHECK_EQ(find_module("[nf_tables]", 0xffffffffc0100000, true, &table), -ENOENT);
    CHECK_EQ(find_module("[nf_table]", 0xffffffffc0200000, true, &table), -ENOENT);
}

TEST_MAIN()
