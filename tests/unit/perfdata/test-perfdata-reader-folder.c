/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <sys/stat.h>

#include "make-container.h"
#include "test.h"
#include "util/file.h"

/* A recording that is a folder. */

static int write_file(int folder, const char *name, Bytes bytes) {
    _cleanup_close_ int fd = openat(folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    return fd < 0 ? -errno : file_write_all(fd, bytes.data, bytes.size);
}

static const char *const folder_names[] = {"data",    "data.2", "data.10", "data.0",
                                           "data.02", "data.x", "data.3",  "other"};

static void remove_folder(const char *path, int folder) {
    for (size_t i = 0; i < ARRAY_SIZE(folder_names); i++)
        (void)unlinkat(folder, folder_names[i], 0);
    (void)unlinkat(folder, "data.4", AT_REMOVEDIR);
    (void)rmdir(path);
}

TEST(directory_is_read_in_the_order_of_its_numbers) {
    char path[] = "/tmp/test-perfdata-reader-folder-XXXXXX";
    _cleanup_(buffer_done) Buffer own = {}, file = {};
    _cleanup_(pd_reader_freep) PdReader *r = NULL;
    _cleanup_close_ int folder = -1;
    bool swap = true;
    uint64_t time = 0;
    unsigned n = 0;
    uint32_t parts = 0;
    PdRecord rec;
    PdStamp s;

    CHECK(mkdtemp(path));
    folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    own = make_samples(swap, 1);
    file = make_file(
        &(FileShape){.swap = swap, .data_size = UINT64_MAX, .records = buffer_bytes(&own)});
    for (size_t i = 0; i < ARRAY_SIZE(folder_names); i++) {
        Maker m = {.swap = swap}, plain = {.swap = swap};
        static const unsigned base[] = {0, 40, 60, 20, 0, 0, 50, 0};

        for (unsigned k = 0; k < 3; k++)
            put_sample(&plain, 11, 2000 + base[i] + k);
        put_stream(&m, PD_RECORD_COMPRESSED, buffer_bytes(&plain.b), 30, false);
        if (base[i] == 50) /* its last record is cut off */
            m.b.size -= 3;
        CHECK_OK(
            write_file(folder, folder_names[i], i == 0 ? buffer_bytes(&file) : buffer_bytes(&m.b)));
        buffer_done(&m.b);
        buffer_done(&plain.b);
    }
    CHECK_OK(mkdirat(folder, "data.4", 0700));
    CHECK_OK(pd_reader_open(path, NULL, &r, NULL));
    CHECK_EQ(pd_reader_header(r)->mode, PD_MODE_DIRECTORY);
    CHECK_EQ(pd_reader_header(r)->n_files, 6);
    for (int pass = 0; pass < 2; pass++) {
        for (n = 0, parts = 0, time = 0; pd_reader_next(r, &rec) > 0; n++) {
            CHECK_OK(pd_events_stamp(pd_reader_events(r), &rec, &s));
            CHECK(s.time > time);
            time = s.time;
            parts |= 1U << rec.file;
        }
        CHECK_EQ(n, 1 + 3 + 3 + 3 + 2);
        CHECK_EQ(parts, 1 | 1 << 1 | 1 << 2 | 1 << 3 | 1 << 5);
        CHECK(strstr(pd_reader_damage(r)->text, "cut off"));
        CHECK_EQ(pd_reader_damage(r)->file, 3);
        CHECK_OK(pd_reader_rewind(r));
    }
    r = pd_reader_free(r);
    CHECK_OK(unlinkat(folder, "data", 0));
    CHECK_EQ(pd_reader_open(path, NULL, &r, NULL), -EBADMSG);
    remove_folder(path, folder);
}

TEST_MAIN()
