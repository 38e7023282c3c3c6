/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "make-program.h"
#include "symbol/kernel/kernel-find.h"
#include "symbol/kernel/kernel-module.h"
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

static void set_path(FrameMapping *m, const char *path) {
    m->path = (Bytes){.data = (const uint8_t *)path, .size = strlen(path)};
}

/* Of arm64, where _text is no function. */
static const char arm_list[] = "ffff800080000000 d _text\n"
                               "ffff800080010000 T _stext\n"
                               "ffff800080010100 t do_one\n"
                               "ffff800080020100 t far\n";

TEST(map_that_is_named_after_stext_counts_from_there) {
    static const uint64_t moved[] = {0, 0x3000000};
    const char *folder = made_path("cache");
    SymbolOptions options = {.caches = &folder, .n_caches = 1};
    FrameMapping m = kept_kernel(arm_list);
    FrameName name;

    set_path(&m, "[kernel.kallsyms]_stext");
    for (size_t i = 0; i < ARRAY_SIZE(moved); i++) {
        m.start = 0xffff800080010000 + moved[i];
        CHECK_STREQ(made_look_up(&m, 0xffff800080020180 + moved[i], &options, &name), "far");
        CHECK_EQ(name.start, 0xffff800080020100 + moved[i]);
        CHECK_STREQ(made_look_up(&m, 0xffff800080010180 + moved[i], &options, &name), "do_one");
    }
    /* What profd keeps has no data, and so no _text. */
    m = kept_kernel(strchr(arm_list, '\n') + 1);
    set_path(&m, "[kernel.kallsyms]_stext");
    m.start = 0xffff800080010000;
    CHECK_STREQ(made_look_up(&m, 0xffff800080020180, &options, &name), "far");
}

TEST(map_that_is_named_after_text_counts_from_there) {
    const char *folder = made_path("cache");
    SymbolOptions options = {.caches = &folder, .n_caches = 1};
    FrameMapping m = kept_kernel(arm_list);
    FrameName name;

    for (unsigned i = 0; i < 2; i++) {
        set_path(&m, i == 0 ? "[kernel.kallsyms]_text" : "[kernel.kallsyms]");
        m.start = 0xffff800083000000;
        CHECK_STREQ(made_look_up(&m, 0xffff800083020180, &options, &name), "far");
    }
    m = kept_kernel(strchr(arm_list, '\n') + 1);
    CHECK_STREQ(made_look_up(&m, m.start + 0x20180, &options, &name), "0xffffffff9a020180");
}

TEST(kept_tables_of_both_kinds_of_maps_are_not_mixed_up) {
    static char text[1 << 17];
    const char *folder = made_path("cache");
    SymbolOptions options = {.caches = &folder, .n_caches = 1, .table_cache = made_path("tables")};
    size_t n = (size_t)snprintf(text, sizeof(text), "%s", arm_list);
    FrameMapping m;
    FrameName name;

    for (unsigned i = 0; i < 3000; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%016lx t another_%u\n",
                              0xffff800080030000 + i * 16UL, i);
    m = kept_kernel(text);
    CHECK(made_run("mkdir tables"));
    for (unsigned i = 0; i < 4; i++) {
        set_path(&m, i % 2 ? "[kernel.kallsyms]_stext" : "[kernel.kallsyms]_text");
        m.start = i % 2 ? 0xffff800080010000 : 0xffff800080000000;
        CHECK_STREQ(made_look_up(&m, 0xffff800080020180, &options, &name), "far");
        CHECK(made_run("test -e tables/*.names"));
    }
}

TEST(what_was_interrupted_at_its_begin_is_not_called_by_what_lies_before) {
    static const char thunks[] = "ffffffff81000000 T _text\n"
                                 "ffffffff81000100 t do_one\n"
                                 "ffffffff81000110 t __pfx_do_two\n"
                                 "ffffffff81000120 T do_two\n"
                                 "ffffffff81000204 T srso_alias_safe_ret\n"
                                 "ffffffff8100020b T srso_alias_return_thunk\n"
                                 "ffffffff81000212 T srso_untrain_ret\n"
                                 "ffffffff81000214 T srso_safe_ret\n";
    const char *folder = made_path("cache");
    SymbolOptions options = {.caches = &folder, .n_caches = 1};
    FrameMapping m = kept_kernel(thunks);
    const struct {
        uint64_t address;
        const char *name;
    } rows[] = {
        {0x110, "do_one"}, /* it ends with a call that does not return */
        {0x120, "do_two"},
        {0x121, "do_two"},
        {0x20b, "srso_alias_return_thunk"},
        {0x210, "srso_alias_return_thunk"},
        {0x214, "srso_safe_ret"},
    };
    FrameName name;

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        CHECK_STREQ(made_look_up_as(&m, m.start + rows[i].address, true, &options, &name),
                    rows[i].name);
}

TEST(list_with_hidden_addresses_names_nothing) {
    const char *folder = made_path("cache");
    SymbolOptions options = {.caches = &folder, .n_caches = 1};
    FrameMapping m = kept_kernel("0000000000000000 T _text\n0000000000000000 T do_one\n");
    FrameName name;

    CHECK_STREQ(made_look_up(&m, 0xffffffff9a000180, &options, &name), "0xffffffff9a000180");
    CHECK(name.naming != FRAME_NAMED);
}

/* -- vmlinux ---------------------------------------------------------------------------------- */

/* Whether do_one is so far behind the reference symbol. */
static bool vmlinux_is_named(uint8_t id, const char *reference, uint64_t distance) {
    FindOptions options = {.root = made_in(), .local_files = true};
    ElfBuildId wanted = {.size = 20};
    StoredTable table = {};
    NameFound found;
    NameBuild build;
    bool is_named;

    memset(wanted.bytes, id, 20);
    name_build_init(&build, NAME_BY_START);
    is_named = kernel_find(&options, &wanted, reference, &build) == 0 &&
               stored_table_make(&build, &table) == 0 &&
               name_table_find(&table.names, distance + 0x10, &found) &&
               strcmp((const char *)found.name.data, "do_one") == 0 && found.start == distance;
    name_build_done(&build);
    stored_table_done(&table);
    return is_named;
}

TEST(installed_vmlinux_names_the_kernel_of_its_build_id) {
    static const char kernel[] = ".text\n.globl _text\n_text: .skip 64\n.globl _stext\n_stext: "
                                 ".skip 192\n.globl do_one\n.type do_one,@function\n"
                                 "do_one: .skip 64\n.size do_one,.-do_one\n";
    static const char *const places[] = {
        "boot/vmlinux-$(uname -r)", "usr/lib/debug/boot/vmlinux-$(uname -r)",
        "lib/modules/$(uname -r)/build/vmlinux",
        "usr/lib/debug/.build-id/ee/eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee.debug"};

    made_write("kernel.s", kernel);
    if (!made_run("as -o kernel.o kernel.s && ld -e _text -Ttext=0xffffffff81000000 "
                  "--build-id=0xeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee -o vmlinux kernel.o"))
        TEST_SKIP("there is no assembler or linker");
    CHECK(!vmlinux_is_named(0xee, "_text", 0x100));
    for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
        CHECK(made_run("mkdir -p $(dirname %s) && cp vmlinux %s", places[i], places[i]));
        CHECK(vmlinux_is_named(0xee, "_text", 0x100));
        CHECK(vmlinux_is_named(0xee, "_stext", 0xc0));
        CHECK(!vmlinux_is_named(0xef, "_text", 0x100));
        CHECK(made_run("rm %s", places[i]));
    }
}

/* -- modules ---------------------------------------------------------------------------------- */

static FrameMapping module_mapping(const char *name, uint64_t start, uint8_t id) {
    FrameMapping m = {.kind = FRAME_MODULE,
                      .path = {.data = (const uint8_t *)name, .size = strlen(name)},
                      .build_id_size = id ? 20 : 0,
                      .start = start};

    memset(m.build_id, id, m.build_id_size);
    return m;
}

static int find_module(const FrameMapping *m, bool same_boot, StoredTable *ret) {
    FindOptions options = {.root = made_in(), .local_files = true, .local_processes = same_boot};
    NameBuild build;
    int r;

    name_build_init(&build, NAME_BY_START);
    r = kernel_module_find(&options, m, &build);
    if (r == 0)
        r = stored_table_make(&build, ret);
    name_build_done(&build);
    return r;
}

static bool module_is_named(FrameMapping m, bool same_boot) {
    StoredTable table = {};
    NameFound found;
    bool is_named = find_module(&m, same_boot, &table) == 0 &&
                    name_table_find(&table.names, 0x120, &found) &&
                    strcmp((const char *)found.name.data, "nft_eval") == 0 && found.start == 0x100;

    stored_table_done(&table);
    return is_named;
}

/* A note with a build id of equal bytes. */
static void load_module(uint8_t id) {
    uint8_t note[36] = {4, 0, 0, 0, 20, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U', 0};
    FILE *f;

    memset(note + 16, id, 20);
    if (!made_run("mkdir -p proc sys/module/nf_tables/notes"))
        abort();
    made_write("proc/kallsyms", "ffffffff81000000 T _text\n"
                                "ffffffffc0200010 t nft_init\t[nf_tables]\n"
                                "ffffffffc0200100 t nft_eval\t[nf_tables]\n"
                                "ffffffffc0300000 t other\t[ext4]\n");
    f = fopen(made_path("sys/module/nf_tables/notes/.note.gnu.build-id"), "w");
    if (!f || fwrite(note, 1, id ? sizeof(note) : 0, f) != (id ? sizeof(note) : 0) ||
        fclose(f) != 0)
        abort();
}

TEST(loaded_module_is_named_if_it_has_the_build_id_of_the_recording) {
    static const char file[] = "/lib/modules/6.1/net/nf-tables.ko.xz";

    load_module(0x77);
    CHECK(module_is_named(module_mapping("[nf_tables]", 0xffffffffc0200000, 0x77), true));
    CHECK(module_is_named(module_mapping(file, 0xffffffffc0200000, 0x77), true));
    /* Of another boot, where it lay elsewhere. */
    CHECK(module_is_named(module_mapping("[nf_tables]", 0xffffffffc0900000, 0x77), false));
    CHECK(!module_is_named(module_mapping("[nf_tables]", 0xffffffffc0200000, 0x78), true));
    CHECK(!module_is_named(module_mapping("[nf_tables]", 0xffffffffc0200000, 0), true));
    CHECK(!module_is_named(module_mapping("[nf_table]", 0xffffffffc0200000, 0x77), true));
}

TEST(module_without_a_build_id_is_named_where_it_was_in_the_same_boot) {
    load_module(0);
    CHECK(module_is_named(module_mapping("[nf_tables]", 0xffffffffc0200000, 0), true));
    CHECK(!module_is_named(module_mapping("[nf_tables]", 0xffffffffc0200000, 0), false));
    CHECK(!module_is_named(module_mapping("[nf_tables]", 0xffffffffc0100000, 0), true));
    CHECK(!module_is_named(module_mapping("[nf_tables]", 0xffffffffc0200000, 0x77), true));
}

/* -- files of modules ------------------------------------------------------------------------- */

static const char source[] =
    ".section .text.unlikely,\"ax\"\n.globl cold\n.type cold,@function\ncold: .skip 512\n"
    ".size cold,.-cold\n"
    ".text\n.skip 256\n.globl nft_eval\n.type nft_eval,@function\nnft_eval: .skip 64\n"
    ".size nft_eval,.-nft_eval\n";

TEST(files_of_a_module_and_its_debug_file_name_it_by_build_id) {
    static const char *const packers[][2] = {
        {"xz --check=crc32", ".xz"}, {"zstd", ".zst"}, {"gzip", ".gz"}};
    FrameMapping m = module_mapping("/lib/modules/6.1/nf-tables.ko", 0xffffffffc0200000, 0xcd);

    load_module(0x77); /* another one of the same name */
    if (!made_run("mkdir -p lib/modules/6.1 usr/lib/debug/.build-id/cd"))
        abort();
    made_write("module.s", source);
    if (!made_run("as -o module.o module.s && ld -r "
                  "--build-id=0xcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd "
                  "-o nf-tables.ko module.o"))
        TEST_SKIP("there is no assembler or linker");
    CHECK(!module_is_named(m, true));
    CHECK(made_run("cp nf-tables.ko lib/modules/6.1/nf-tables.ko"));
    CHECK(module_is_named(m, false));
    m.build_id[0] = 0x12;
    CHECK(!module_is_named(m, false));
    m.build_id[0] = 0xcd;
    CHECK(made_run("rm lib/modules/6.1/nf-tables.ko"));
    CHECK(!module_is_named(m, false));
    for (size_t i = 0; i < ARRAY_SIZE(packers); i++) {
        char packed[64];

        if (!made_run("%s -c <nf-tables.ko >lib/modules/6.1/nf-tables.ko%s", packers[i][0],
                      packers[i][1]))
            TEST_SKIP("xz, zstd or gzip is missing");
        snprintf(packed, sizeof(packed), "/lib/modules/6.1/nf-tables.ko%s", packers[i][1]);
        CHECK(module_is_named(module_mapping(packed, m.start, 0xcd), false));
        CHECK(!module_is_named(module_mapping(packed, m.start, 0x12), false));
        /* A file that was cut off or damaged names nothing. */
        CHECK(made_run("truncate -s -20 .%s", packed));
        CHECK(!module_is_named(module_mapping(packed, m.start, 0xcd), false));
        CHECK(made_run("truncate -s 6 .%s", packed));
        CHECK(!module_is_named(module_mapping(packed, m.start, 0xcd), false));
    }
    CHECK(made_run("objcopy --only-keep-debug nf-tables.ko usr/lib/debug/.build-id/cd/"
                   "cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd.debug"));
    CHECK(module_is_named(m, false));
}

TEST_MAIN()
