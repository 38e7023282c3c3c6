/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/file/archive-input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "archive/tar-writer.h"
#include "test.h"
#include "util/buffer.h"

/* What an archive may put on the disk, and where. */

#define ID "0123456789abcdef0123456789abcdef01234567"

static int keep(const void *data, size_t size, void *arg) {
    buffer_append(arg, data, size);
    return buffer_error(arg);
}

/* Writes an archive with these names, each file containing its name; returns its path. */
static const char *make_archive(size_t n, const char *const *names) {
    static char path[64];
    _cleanup_(buffer_done) Buffer made = {};
    _cleanup_close_ int fd = -1;
    TarWriter tar = {.sink = keep, .arg = &made};
    bool ok = true;

    strcpy(path, "/tmp/test-archive-input-XXXXXX");
    fd = mkstemp(path);
    for (size_t i = 0; i < n; i++)
        ok &= tar_write_bytes(&tar, names[i],
                              (Bytes){(const uint8_t *)names[i], strlen(names[i])}) == 0;
    ok &= tar_write_end(&tar) == 0 && fd >= 0 &&
          write(fd, made.data, made.size) == (ssize_t)made.size;
    if (!ok)
        abort();
    return path;
}

/* The files and folders below a folder, by find(1), sorted. */
static void list_below(const char *folder, char *ret, size_t size) {
    char command[256];
    FILE *list;
    size_t n;

    snprintf(command, sizeof(command), "cd %s && find . -mindepth 1 | LC_ALL=C sort", folder);
    list = popen(command, "r");
    n = list ? fread(ret, 1, size - 1, list) : 0;
    ret[n] = '\0';
    if (list)
        (void)pclose(list);
}

TEST(an_archive_is_known_by_its_content) {
    static const char *const names[] = {"perf.data"};
    const char *path = make_archive(1, names);

    CHECK_EQ(archive_is(path), 1);
    CHECK_EQ(truncate(path, 500), 0);
    CHECK_EQ(archive_is(path), 0);
    (void)unlink(path);
    CHECK_EQ(archive_is(path), -ENOENT);
    CHECK_EQ(archive_is("/dev/null"), 0);
}

TEST(the_recording_is_an_unlinked_file) {
    static const char *const names[] = {"other", "perf.data"}, *const none[] = {"other"};
    const char *path = make_archive(2, names);
    _cleanup_close_ int fd = -1;
    char text[32] = "";
    struct stat st;

    CHECK_OK(archive_open_recording(path, &fd));
    (void)unlink(path);
    CHECK_OK(fstat(fd, &st));
    CHECK_EQ(st.st_nlink, 0);
    CHECK_EQ(read(fd, text, sizeof(text) - 1), 9);
    CHECK_STREQ(text, "perf.data");
    path = make_archive(1, none);
    CHECK_EQ(archive_open_recording(path, &fd), -ENOENT);
    (void)unlink(path);
}

TEST(only_files_of_the_build_id_layout_and_maps_are_unpacked) {
    static const char *const names[] = {
        "perf.data",
        ".build-id/01/23456789abcdef/elf",
        ".build-id/01/23456789abcdef/debug",
        ".build-id/01/23456789abcdef/../../../escaped",
        ".build-id/../../escaped",
        ".build-id/01/23456789abcdef/elf/../../x",
        ".build-id/01/" ID "0/elf",
        ".build-id/01/2/elf",
        ".build-id/0x/23456789abcdef/elf",
        ".build-id/01/23456789ABCDEF/elf",
        ".build-id/01/23456789abcdef/",
        "/.build-id/01/23456789abcdef/elf",
        "./.build-id/01/23456789abcdef/elf",
        ".build-id/ff/23456789abcdef/kallsyms",
        ".build-id/ff/23456789abcdef/kallsyms",
        "maps/12-1700000000000000.map",
        "maps/12-.map",
        "maps/12-1/../../x.map",
        "maps/12345678901-1.map",
        "maps/x-1.map",
        "maps/13-1.map/x",
    };
    const char *path = make_archive(ARRAY_SIZE(names), names);
    ArchiveFolder *folder = NULL;
    char list[1024], root[128];
    struct stat st;
    int r = archive_unpack(path, &folder);

    (void)unlink(path);
    CHECK_OK(r);
    list_below(archive_folder_path(folder), list, sizeof(list));
    snprintf(root, sizeof(root), "%s", archive_folder_path(folder));
    CHECK_OK(stat(root, &st));
    CHECK_EQ(st.st_mode & 0777, 0700);
    archive_folder_free(folder);
    CHECK_STREQ(list, "./.build-id\n"
                      "./.build-id/01\n"
                      "./.build-id/01/23456789abcdef\n"
                      "./.build-id/01/23456789abcdef/debug\n"
                      "./.build-id/01/23456789abcdef/elf\n"
                      "./.build-id/ff\n"
                      "./.build-id/ff/23456789abcdef\n"
                      "./.build-id/ff/23456789abcdef/kallsyms\n"
                      "./maps\n"
                      "./maps/12-1700000000000000.map\n");
    CHECK_EQ(stat(root, &st), -1);
}

TEST(a_damaged_archive_leaves_nothing_behind) {
    static const char *const names[] = {".build-id/01/23456789abcdef/elf", "last"};
    const char *path = make_archive(2, names);
    char folder[] = "/tmp/test-archive-input-XXXXXX", list[256];
    ArchiveFolder *unpacked = NULL;
    int r;

    CHECK(mkdtemp(folder));
    CHECK_EQ(setenv("TMPDIR", folder, 1), 0);
    CHECK_EQ(truncate(path, 4 * 512 - 100), 0);
    r = archive_unpack(path, &unpacked);
    (void)unlink(path);
    list_below(folder, list, sizeof(list));
    (void)unsetenv("TMPDIR");
    (void)rmdir(folder);
    CHECK_EQ(r, -EBADMSG);
    CHECK_STREQ(list, "");
}

TEST_MAIN()
