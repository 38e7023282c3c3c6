/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "archive/tar-header.h"
#include "archive/tar-reader.h"
#include "archive/tar-writer.h"
#include "encode/gzip.h"
#include "test.h"
#include "util/buffer.h"

/* What the writer writes the reader reads; what a hostile hand changes is damage. */

static int keep(const void *data, size_t size, void *arg) {
    buffer_append(arg, data, size);
    return buffer_error(arg);
}

/* At most 100 bytes a call, as a pipe may do. */
static ssize_t take(void *data, size_t size, void *arg) {
    Bytes *rest = arg;
    size_t n = MIN(size, (size_t)100);

    n = MIN(n, rest->size);
    memcpy(data, rest->data, n);
    *rest = (Bytes){.data = rest->data + n, .size = rest->size - n};
    return (ssize_t)n;
}

static Bytes text(const char *s) {
    return (Bytes){.data = (const uint8_t *)s, .size = strlen(s)};
}

static void make_tar(Buffer *ret) {
    TarWriter tar = {.sink = keep, .arg = ret, .mtime_s = 1700000000};

    if (tar_write_bytes(&tar, "perf.data", text("PERFILE2")) < 0 ||
        tar_write_bytes(&tar, ".build-id/ab/cd/elf", text("")) < 0 ||
        tar_write_bytes(&tar, "last", text("x")) < 0 || tar_write_end(&tar) < 0)
        abort();
}

/* Reads all of it; counts entries and bytes. */
static int read_all(Bytes bytes, unsigned *ret_entries, Buffer *ret_content) {
    _cleanup_(tar_reader_freep) TarReader *tar = NULL;
    int r = tar_reader_new(take, &bytes, &tar);
    TarEntry entry;

    *ret_entries = 0;
    while (r == 0 && (r = tar_reader_next(tar, &entry)) > 0) {
        uint8_t block[64];
        ssize_t n;

        (*ret_entries)++;
        while ((n = tar_reader_read(tar, block, sizeof(block))) > 0)
            buffer_append(ret_content, block, (size_t)n);
        r = (int)n;
    }
    return r;
}

TEST(an_archive_is_read_as_it_was_written) {
    _cleanup_(buffer_done) Buffer made = {}, content = {};
    _cleanup_(tar_reader_freep) TarReader *tar = NULL;
    Bytes rest;
    TarEntry entry;
    unsigned n;

    make_tar(&made);
    CHECK_OK(read_all(buffer_bytes(&made), &n, &content));
    CHECK_EQ(n, 3);
    CHECK(bytes_equal_str(buffer_bytes(&content), "PERFILE2x"));
    rest = buffer_bytes(&made);
    CHECK_OK(tar_reader_new(take, &rest, &tar));
    CHECK_EQ(tar_reader_next(tar, &entry), 1);
    CHECK_STREQ(entry.name, "perf.data");
    CHECK(entry.is_file);
    CHECK_EQ(entry.size, 8);
    CHECK_EQ(tar_reader_next(tar, &entry), 1);
    CHECK_STREQ(entry.name, ".build-id/ab/cd/elf");
    CHECK_EQ(tar_reader_next(tar, &entry), 1);
    CHECK_EQ(tar_reader_next(tar, &entry), 0);
    CHECK_EQ(tar_reader_next(tar, &entry), 0);
}

TEST(a_compressed_archive_is_read_too) {
    _cleanup_(buffer_done) Buffer made = {}, packed = {}, content = {};
    _cleanup_(gzip_freep) Gzip *gzip = NULL;
    unsigned n;

    make_tar(&made);
    CHECK_OK(gzip_new(1, keep, &packed, &gzip));
    CHECK_OK(gzip_write(gzip, made.data, made.size));
    CHECK_OK(gzip_finish(gzip));
    CHECK_OK(read_all(buffer_bytes(&packed), &n, &content));
    CHECK_EQ(n, 3);
    CHECK(bytes_equal_str(buffer_bytes(&content), "PERFILE2x"));
    for (size_t cut = 3; cut < packed.size; cut++)
        CHECK_EQ(read_all((Bytes){packed.data, cut}, &n, &content), -EBADMSG);
}

TEST(an_archive_that_was_cut_is_damaged) {
    _cleanup_(buffer_done) Buffer made = {}, content = {};
    unsigned n;

    make_tar(&made);
    for (size_t cut = 0; cut < made.size - 2 * TAR_BLOCK; cut++)
        CHECK_EQ(read_all((Bytes){made.data, cut}, &n, &content), -EBADMSG);
}

TEST(a_changed_header_is_damaged) {
    _cleanup_(buffer_done) Buffer made = {}, content = {};
    unsigned n;

    make_tar(&made);
    for (size_t i = 0; i < TAR_BLOCK; i++) {
        made.data[i] ^= 1;
        /* A change of the spaces that end the checksum changes nothing. */
        if (read_all(buffer_bytes(&made), &n, &content) != -EBADMSG)
            CHECK(i >= offsetof(TarHeader, checksum) + 6 && i < offsetof(TarHeader, type));
        made.data[i] ^= 1;
    }
}

TEST(a_size_without_bytes_behind_it_allocates_nothing_and_is_damage) {
    _cleanup_(buffer_done) Buffer made = {}, content = {};
    TarHeader header;
    unsigned n;

    make_tar(&made);
    memcpy(&header, made.data, sizeof(header));
    memset(header.size, 0xff, sizeof(header.size));
    header.size[0] = (char)0x80;
    for (unsigned big = 0; big < 2; big++) {
        memset(header.size + 1, big ? 0x7f : 0, 4);
        snprintf(header.checksum, sizeof(header.checksum), "%06o", tar_header_sum(&header));
        memcpy(made.data, &header, sizeof(header));
        CHECK_EQ(read_all(buffer_bytes(&made), &n, &content), -EBADMSG);
        CHECK(content.size < made.size);
    }
}

TEST(another_file_is_no_archive) {
    _cleanup_(buffer_done) Buffer content = {};
    unsigned n;
    char other[2 * TAR_BLOCK] = "PERFILE2";

    CHECK_EQ(read_all((Bytes){(uint8_t *)other, sizeof(other)}, &n, &content), -EBADMSG);
    CHECK_EQ(read_all((Bytes){(uint8_t *)other, 0}, &n, &content), -EBADMSG);
}

TEST(a_file_is_copied_from_its_descriptor) {
    _cleanup_(buffer_done) Buffer made = {}, content = {}, big = {};
    _cleanup_close_ int fd = memfd_create("tar", MFD_CLOEXEC);
    TarWriter tar = {.sink = keep, .arg = &made};
    unsigned n;

    for (uint32_t i = 0; i < 50000; i++)
        buffer_u32(&big, i, false);
    CHECK_EQ(write(fd, big.data, big.size), (ssize_t)big.size);
    CHECK_OK(tar_write_file(&tar, "big", fd));
    CHECK_OK(tar_write_end(&tar));
    CHECK_EQ(made.size % TAR_BLOCK, 0);
    CHECK_OK(read_all(buffer_bytes(&made), &n, &content));
    CHECK(bytes_equal(buffer_bytes(&content), buffer_bytes(&big)));
}

TEST(names_that_do_not_fit_are_refused) {
    _cleanup_(buffer_done) Buffer made = {};
    TarWriter tar = {.sink = keep, .arg = &made};
    char name[101];

    memset(name, 'n', 100);
    name[100] = '\0';
    CHECK_EQ(tar_write_bytes(&tar, name, text("x")), -ENAMETOOLONG);
    CHECK_OK(tar_write_bytes(&tar, name + 1, text("x")));
}

TEST(gnu_tar_lists_what_was_written) {
    _cleanup_(buffer_done) Buffer made = {};
    char command[64], line[128] = "";
    char path[] = "/tmp/test-archive-tar-XXXXXX";
    _cleanup_close_ int fd = mkstemp(path);
    FILE *list;
    size_t n;

    make_tar(&made);
    CHECK(fd >= 0 && write(fd, made.data, made.size) == (ssize_t)made.size);
    snprintf(command, sizeof(command), "tar tf %s", path);
    list = popen(command, "r");
    CHECK(list);
    n = fread(line, 1, sizeof(line) - 1, list);
    (void)unlink(path);
    CHECK_EQ(pclose(list), 0);
    line[n] = '\0';
    CHECK_STREQ(line, "perf.data\n.build-id/ab/cd/elf\nlast\n");
}

TEST_MAIN()
