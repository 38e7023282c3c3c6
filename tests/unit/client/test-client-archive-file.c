/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/archive/archive-file.h"

#include <sys/auxv.h>

#include "archive/tar-reader.h"
#include "make-program.h"
#include "test.h"
#include "util/buffer.h"

/* What goes into an archive for one mapping, and whether its code is named with that alone. */

enum { MODULE_ID = 0xcd };

static const uint64_t module_start = 0xffffffffc0200000;

static int keep(const void *data, size_t size, void *arg) {
    buffer_append(arg, data, size);
    return buffer_error(arg);
}

static ssize_t take(void *data, size_t size, void *arg) {
    Bytes *rest = arg;
    size_t n = MIN(size, rest->size);

    memcpy(data, rest->data, n);
    *rest = (Bytes){.data = rest->data + n, .size = rest->size - n};
    return (ssize_t)n;
}

/* Packs what a profile with one frame in the mapping needs. */
static ArchiveCount pack(const FrameMapping *m, bool reduced, Buffer *ret) {
    _cleanup_(made_profile_done) MadeProfile made = made_profile();
    ArchiveOptions options = {.reduced = reduced};
    TarWriter tar = {.sink = keep, .arg = ret};
    ArchiveCount count = {};
    uint32_t node = STACK_ROOT;

    if (stack_tree_new(1 << 10, &made.profile.stacks) < 0 ||
        stack_tree_add(made.profile.stacks, node, made_frame(&made, m, m->start + 0x120, false),
                       &node) < 0 ||
        archive_write_files(&tar, &options, &made.profile, &count) < 0 || tar_write_end(&tar) < 0)
        abort();
    stack_tree_free(made.profile.stacks);
    return count;
}

/* Unpacks into the folder "cache"; returns the number of files. */
static unsigned unpack(const Buffer *archive) {
    _cleanup_(tar_reader_freep) TarReader *tar = NULL;
    Bytes rest = buffer_bytes(archive);
    unsigned n = 0;
    TarEntry entry;

    if (!made_run("rm -rf cache") || tar_reader_new(take, &rest, &tar) < 0)
        abort();
    for (; tar_reader_next(tar, &entry) > 0; n++) {
        char path[512], block[4096];
        ssize_t size;
        FILE *f;

        snprintf(path, sizeof(path), "%s/%s", made_path("cache"), entry.name);
        f = made_run("mkdir -p $(dirname %s)", path) ? fopen(path, "w") : NULL;
        while (f && (size = tar_reader_read(tar, block, sizeof(block))) > 0)
            (void)!fwrite(block, 1, (size_t)size, f);
        if (!f || fclose(f) != 0)
            abort();
    }
    return n;
}

static bool is_named(const FrameMapping *m, uint64_t address, const char *part) {
    const char *folder = made_path("cache");
    SymbolOptions options = {.caches = &folder, .n_caches = 1};
    FrameName found;

    return strstr(made_look_up(m, address, &options, &found), part) != NULL;
}

/* -- modules ---------------------------------------------------------------------------------- */

static const char source[] =
    ".section .text.unlikely,\"ax\"\n.globl cold\n.type cold,@function\ncold: .skip 512\n"
    ".size cold,.-cold\n"
    ".text\n.skip 256\n.globl nft_eval\n.type nft_eval,@function\nnft_eval: .skip 64\n"
    ".size nft_eval,.-nft_eval\n";

static bool make_module(void) {
    made_write("module.s", source);
    return made_run("as -o module.o module.s && ld -r "
                    "--build-id=0xcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd "
                    "-o nf-tables.ko module.o");
}

static FrameMapping module_mapping(const char *path) {
    FrameMapping m = {.kind = FRAME_MODULE,
                      .path = {.data = (const uint8_t *)path, .size = strlen(path)},
                      .build_id_size = 20,
                      .start = module_start};

    memset(m.build_id, MODULE_ID, m.build_id_size);
    return m;
}

TEST(a_module_is_packed_as_it_is_before_it_is_compressed) {
    static const char *const packers[][2] = {
        {"cat", ""}, {"xz --check=crc32 -c", ".xz"}, {"zstd -c", ".zst"}, {"gzip -c", ".gz"}};

    if (!make_module() || !made_has("xz") || !made_has("zstd") || !made_has("gzip"))
        TEST_SKIP("there is no assembler, linker or compressor");
    for (size_t i = 0; i < 2 * ARRAY_SIZE(packers); i++) {
        _cleanup_(buffer_done) Buffer archive = {};
        const char *const *packer = packers[i / 2];
        bool reduced = i % 2;
        ArchiveCount count;
        FrameMapping m;
        char name[64];

        snprintf(name, sizeof(name), "packed.ko%s", packer[1]);
        CHECK(made_run("%s <nf-tables.ko >%s", packer[0], name));
        m = module_mapping(made_path(name));
        count = pack(&m, reduced, &archive);
        CHECK_EQ(count.files, 1);
        CHECK_EQ(count.missing, 0);
        CHECK_EQ(unpack(&archive), 1);
        CHECK_EQ(made_run("cmp nf-tables.ko cache/.build-id/cd/"
                          "cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd/elf"),
                 !reduced);
        CHECK(is_named(&m, module_start + 0x120, "nft_eval"));
        CHECK(made_run("rm %s", name));
    }
}

TEST(another_module_at_the_path_is_not_packed) {
    _cleanup_(buffer_done) Buffer archive = {};
    ArchiveCount count;
    FrameMapping m;

    if (!make_module() || !made_run("xz -c <nf-tables.ko >other.ko.xz"))
        TEST_SKIP("there is no assembler, linker or compressor");
    m = module_mapping(made_path("other.ko.xz"));
    m.build_id[0] = 0x12;
    count = pack(&m, false, &archive);
    CHECK_EQ(count.files, 0);
    CHECK_EQ(count.missing, 1);
    CHECK_EQ(unpack(&archive), 0);
}

/* -- vdso ------------------------------------------------------------------------------------- */

/* The kernel maps it, and no file has it. */
TEST(the_vdso_is_packed) {
    const void *begin = (const void *)(uintptr_t)getauxval(AT_SYSINFO_EHDR); /* NOLINT */
    FrameMapping m = {.kind = FRAME_VDSO, .path = {.data = (const uint8_t *)"[vdso]", .size = 6}};
    FILE *f = begin ? fopen(made_path("vdso"), "w") : NULL;
    char command[256];

    if (!f || fwrite(begin, (size_t)sysconf(_SC_PAGESIZE), 1, f) != 1 || fclose(f) != 0)
        TEST_SKIP("there is no vdso");
    made_build_id("vdso", &m);
    if (m.build_id_size == 0)
        TEST_SKIP("readelf is missing, or the vdso has no build id");
    for (unsigned reduced = 0; reduced < 2; reduced++) {
        _cleanup_(buffer_done) Buffer archive = {};
        ArchiveCount count = pack(&m, reduced, &archive);

        CHECK_EQ(count.files, 1);
        CHECK_EQ(count.missing, 0);
        CHECK_EQ(unpack(&archive), 1);
        snprintf(command, sizeof(command),
                 "nm -D %s/.build-id/*/*/vdso | awk '/clock_gettime/ { print $1; exit }'",
                 made_path("cache"));
        CHECK(is_named(&m, made_number(command), "clock_gettime"));
    }
}

TEST_MAIN()
