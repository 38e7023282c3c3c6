/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture/baseline.h"

#include <limits.h>
#include <sys/stat.h>

#include "test.h"
#include "util/file.h"

/* What a scan of a made-up /proc turns into: the records, their order and their content. */

typedef struct Seen {
    unsigned records;
    unsigned by_type[16];
    PdMmap mmaps[8];
    unsigned n_mmaps;
    char filenames[8][64];
} Seen;

static const PdTrailer trailer = {
    .sample_type = PD_SAMPLE_IDENTIFIER | PD_SAMPLE_TIME, .id = 5, .time = 9};

static int see(void *userdata, const Batch *batch) {
    Seen *seen = userdata;

    for (size_t at = 0; at < batch->records.size;) {
        const uint8_t *p = batch->records.data + at;
        uint32_t type = load_u32(p, false);
        uint16_t size = load_u16(p + 6, false);

        seen->records++;
        seen->by_type[type % 16]++;
        if ((type == PD_RECORD_MMAP || type == PD_RECORD_MMAP2) && seen->n_mmaps < 8) {
            unsigned i = seen->n_mmaps++;

            seen->mmaps[i] = (PdMmap){.pid = load_u32(p + 8, false),
                                      .start = load_u64(p + 16, false),
                                      .length = load_u64(p + 24, false),
                                      .pgoff = load_u64(p + 32, false)};
            snprintf(seen->filenames[i], sizeof(seen->filenames[i]), "%s",
                     (const char *)p + (type == PD_RECORD_MMAP ? 40 : 72));
        }
        at += size;
    }
    return 0;
}

static int put(const char *root, const char *path, const char *text) {
    char full[PATH_MAX], *slash;
    FILE *f;

    snprintf(full, sizeof(full), "%s%s", root, path);
    slash = strrchr(full, '/');
    *slash = '\0';
    if (file_make_folders(full, 0700) < 0)
        return -errno;
    *slash = '/';
    f = fopen(full, "we");
    if (!f)
        return -errno;
    fputs(text, f);
    return fclose(f) < 0 ? -errno : 0;
}

/* A /proc with one process of two threads, one kernel thread, and things that are neither. */
static int make_root(char *root) {
    if (!mkdtemp(root))
        return -errno;
    if (put(root, "/proc/kallsyms",
            "0000000000000000 A fixed_percpu_data\nffffffff81000000 T _text\n"
            "ffffffff81000040 T startup_64\nffffffff82000000 T _etext\n") < 0 ||
        put(root, "/proc/modules",
            "zram 40960 2 - Live 0xffffffffc0400000\nhidden 4096 0 - Live 0x0000000000000000\n"
            "garbage\n") < 0 ||
        put(root, "/proc/42/comm", "worker\n") < 0 ||
        put(root, "/proc/42/task/42/comm", "worker\n") < 0 ||
        put(root, "/proc/42/task/43/comm", "io\n") < 0 ||
        put(root, "/proc/42/maps",
            "00400000-00401000 r--p 00000000 08:01 7 /usr/bin/a b\\012c\n"
            "00401000-00402000 r-xp 00001000 08:01 7 /usr/bin/a b\\012c\n"
            "7f0000000000-7f0000001000 rwxp 00000000 00:00 0 \n"
            "7ffd00000000-7ffd00001000 r-xp 00000000 00:00 0                          [vdso]\n"
            "nonsense\n") < 0 ||
        put(root, "/proc/2/task/2/comm", "kthreadd\n") < 0 || put(root, "/proc/2/maps", "") < 0 ||
        put(root, "/proc/meminfo", "MemTotal: 1 kB\n") < 0)
        return -errno;
    return 0;
}

static void remove_root(const char *root) {
    char command[PATH_MAX];

    snprintf(command, sizeof(command), "rm -rf '%s'", root);
    if (system(command) != 0)
        printf("# could not remove %s\n", root);
}

TEST(processes_become_comm_fork_and_mmap2) {
    char root[] = "/tmp/test-baseline-XXXXXX";
    Seen seen = {};

    CHECK_OK(make_root(root));
    CHECK_OK(baseline_processes(root, &trailer, see, &seen));
    remove_root(root);
    CHECK_EQ(seen.by_type[PD_RECORD_COMM], 3U);
    CHECK_EQ(seen.by_type[PD_RECORD_FORK], 1U);
    CHECK_EQ(seen.by_type[PD_RECORD_MMAP2], 3U);
    CHECK_EQ(seen.records, 7U);
    CHECK_EQ(seen.mmaps[0].pid, 42U);
    CHECK_EQ(seen.mmaps[0].start, (uint64_t)0x401000);
    CHECK_EQ(seen.mmaps[0].pgoff, (uint64_t)0x1000);
    CHECK_STREQ(seen.filenames[0], "/usr/bin/a b\nc");
    CHECK_STREQ(seen.filenames[1], "//anon");
    CHECK_STREQ(seen.filenames[2], "[vdso]");
}

TEST(the_kernel_is_its_text_and_its_modules) {
    char root[] = "/tmp/test-baseline-XXXXXX";
    Seen seen = {};

    CHECK_OK(make_root(root));
    CHECK_OK(baseline_kernel(root, &trailer, see, &seen));
    remove_root(root);
    CHECK_EQ(seen.n_mmaps, 2U);
    CHECK_EQ(seen.mmaps[0].pid, UINT32_MAX);
    CHECK_EQ(seen.mmaps[0].start, (uint64_t)0xffffffff81000000);
    CHECK_EQ(seen.mmaps[0].length, (uint64_t)0x1000000);
    CHECK_EQ(seen.mmaps[0].pgoff, (uint64_t)0xffffffff81000000);
    CHECK_STREQ(seen.filenames[0], "[kernel.kallsyms]_text");
    CHECK_STREQ(seen.filenames[1], "[zram]");
    CHECK_EQ(seen.mmaps[1].length, (uint64_t)40960);
}

TEST_MAIN()
