/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "config/config.h"
#include "test.h"
#include "util/file.h"

/* Which files are read, in which order, and which are hidden, in a root of its own. */

typedef struct Root {
    char path[32];
    unsigned n;      /* problems */
    char last[1024]; /* the latest, with its file */
    unsigned line;
} Root;

static void note(void *userdata, const char *path, unsigned line, const char *problem) {
    Root *root = userdata;
    const char *below =
        strncmp(path, root->path, strlen(root->path)) == 0 ? path + strlen(root->path) : path;

    root->n++;
    root->line = line;
    snprintf(root->last, sizeof(root->last), "%s: %s", below, problem);
}

static int forget(const char *path, const struct stat *st _unused_, int type _unused_,
                  struct FTW *ftw _unused_) {
    return remove(path);
}

static void root_done(Root *root) {
    (void)nftw(root->path, forget, 8, FTW_DEPTH | FTW_PHYS);
}

static Root root_new(void) {
    Root root = {.path = "/tmp/test-config-XXXXXX"};

    assert(mkdtemp(root.path));
    return root;
}

static void path_of(const Root *root, const char *name, char *ret) {
    char *slash;

    snprintf(ret, PATH_MAX, "%s/%s", root->path, name);
    slash = strrchr(ret, '/');
    *slash = '\0';
    CHECK_OK(file_make_folders(ret, 0755));
    *slash = '/';
}

static void put(const Root *root, const char *name, const char *text) {
    char path[PATH_MAX];
    _cleanup_close_ int fd = -1;

    path_of(root, name, path);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    CHECK(fd >= 0);
    CHECK_OK(file_write_all(fd, text, strlen(text)));
}

static void mask(const Root *root, const char *name) {
    char path[PATH_MAX];

    path_of(root, name, path);
    CHECK_OK(symlink("/dev/null", path));
}

/* The frequency of the session `default`, by which the tests tell who was last. */
static uint64_t frequency(Root *root, const char *file) {
    _cleanup_(config_freep) Config *config = NULL;
    char path[PATH_MAX];

    root->n = 0;
    snprintf(path, sizeof(path), "%s/%s", root->path, file ? file : "");
    assert(config_load_below(root->path, file ? path : NULL, note, root, &config) >= 0);
    return config->sessions[0].frequency_hz;
}

#define SET(hz) "[Session default]\nFrequency=" #hz "\n"

TEST(no_configuration_file_is_needed) {
    _cleanup_(root_done) Root root = root_new();

    CHECK_EQ(frequency(&root, NULL), (uint64_t)99);
    CHECK_EQ(root.n, 0U);
}

TEST(only_the_first_main_file_is_read) {
    _cleanup_(root_done) Root root = root_new();

    put(&root, "usr/lib/profd/profd.conf", SET(1));
    CHECK_EQ(frequency(&root, NULL), (uint64_t)1);
    put(&root, "run/profd/profd.conf", SET(2));
    CHECK_EQ(frequency(&root, NULL), (uint64_t)2);
    put(&root, "etc/profd/profd.conf", "[Profd]\n");
    CHECK_EQ(frequency(&root, NULL), (uint64_t)99);
}

TEST(drop_ins_of_all_folders_are_read_in_order_of_their_names) {
    _cleanup_(root_done) Root root = root_new();

    put(&root, "etc/profd/profd.conf", SET(1));
    put(&root, "usr/lib/profd/profd.conf.d/20.conf", SET(2));
    CHECK_EQ(frequency(&root, NULL), (uint64_t)2);
    put(&root, "etc/profd/profd.conf.d/10.conf", SET(3));
    CHECK_EQ(frequency(&root, NULL), (uint64_t)2);
    put(&root, "run/profd/profd.conf.d/30.conf", SET(4));
    CHECK_EQ(frequency(&root, NULL), (uint64_t)4);
    CHECK_EQ(root.n, 0U);
}

TEST(a_drop_in_hides_the_same_name_in_later_folders) {
    _cleanup_(root_done) Root root = root_new();

    put(&root, "usr/lib/profd/profd.conf.d/10.conf", SET(1));
    CHECK_EQ(frequency(&root, NULL), (uint64_t)1);
    put(&root, "run/profd/profd.conf.d/10.conf", SET(2));
    CHECK_EQ(frequency(&root, NULL), (uint64_t)2);
    put(&root, "etc/profd/profd.conf.d/10.conf", "");
    CHECK_EQ(frequency(&root, NULL), (uint64_t)99);
}

TEST(a_link_to_dev_null_masks_a_drop_in) {
    _cleanup_(root_done) Root root = root_new();

    put(&root, "usr/lib/profd/profd.conf.d/10.conf", SET(1));
    put(&root, "usr/lib/profd/profd.conf", SET(5));
    mask(&root, "etc/profd/profd.conf.d/10.conf");
    CHECK_EQ(frequency(&root, NULL), (uint64_t)5);
    mask(&root, "etc/profd/profd.conf");
    CHECK_EQ(frequency(&root, NULL), (uint64_t)99);
    CHECK_EQ(root.n, 0U);
}

TEST(only_names_that_end_in_conf_are_drop_ins) {
    _cleanup_(root_done) Root root = root_new();

    put(&root, "etc/profd/profd.conf.d/10.conf.dpkg-old", SET(1));
    put(&root, "etc/profd/profd.conf.d/.hidden.conf", SET(1));
    put(&root, "etc/profd/profd.conf.d/.conf", SET(1));
    put(&root, "etc/profd/profd.conf.d/README", "text\n");
    CHECK_EQ(frequency(&root, NULL), (uint64_t)99);
    CHECK_EQ(root.n, 0U);
}

TEST(a_given_file_has_only_the_drop_ins_beside_it) {
    _cleanup_(root_done) Root root = root_new();

    put(&root, "etc/profd/profd.conf.d/90.conf", SET(1));
    put(&root, "my.conf", SET(2));
    CHECK_EQ(frequency(&root, "my.conf"), (uint64_t)2);
    put(&root, "my.conf.d/a.conf", SET(3));
    CHECK_EQ(frequency(&root, "my.conf"), (uint64_t)3);
    mask(&root, "my.conf.d/b.conf");
    CHECK_EQ(frequency(&root, "my.conf"), (uint64_t)3);
    CHECK_EQ(root.n, 0U);
}

TEST(problems_name_the_drop_in) {
    _cleanup_(root_done) Root root = root_new();

    put(&root, "etc/profd/profd.conf", SET(1));
    put(&root, "run/profd/profd.conf.d/x.conf", "[Session default]\n\nFrequency=0\n");
    CHECK_EQ(frequency(&root, NULL), (uint64_t)1);
    CHECK_EQ(root.n, 1U);
    CHECK_EQ(root.line, 3U);
    CHECK_STREQ(root.last, "/run/profd/profd.conf.d/x.conf: Frequency=0 is out of range: it takes "
                           "samples a second from 1 to 100000, or max");
}

TEST(a_section_ends_with_its_file) {
    _cleanup_(root_done) Root root = root_new();

    put(&root, "etc/profd/profd.conf", "[Session default]\n");
    put(&root, "etc/profd/profd.conf.d/x.conf", "Frequency=7\n");
    CHECK_EQ(frequency(&root, NULL), (uint64_t)99);
    CHECK_EQ(root.n, 1U);
    CHECK_EQ(root.line, 1U);
}

TEST(missing_file_is_reported) {
    _cleanup_(root_done) Root root = root_new();
    Config *config = NULL;
    char path[PATH_MAX];

    put(&root, "etc/profd/profd.conf.d/x.conf/y", "");
    CHECK_EQ(frequency(&root, NULL), (uint64_t)99);
    CHECK_EQ(root.n, 1U);
    CHECK(strstr(root.last, "cannot be read"));
    path_of(&root, "pipe", path);
    CHECK_OK(mkfifo(path, 0600));
    CHECK_EQ(config_load(path, note, &root, &config), -EINVAL);
    CHECK_EQ(config_load(root.path, note, &root, &config), -EISDIR);
    path_of(&root, "etc/profd/profd.conf", path);
    CHECK_OK(mkdir(path, 0755));
    CHECK_EQ(config_load_below(root.path, NULL, note, &root, &config), -EISDIR);
    CHECK(!config);
}

TEST(files_that_are_too_big_are_refused) {
    _cleanup_(root_done) Root root = root_new();
    Config *config = NULL;
    char path[PATH_MAX];

    put(&root, "big", SET(7));
    path_of(&root, "big", path);
    CHECK_OK(truncate(path, (1 << 20) + 1));
    CHECK_EQ(config_load(path, note, &root, &config), -EFBIG);
    put(&root, "small", SET(7));
    put(&root, "small.d/big.conf", SET(8));
    path_of(&root, "small.d/big.conf", path);
    CHECK_OK(truncate(path, 1LL << 40));
    CHECK_EQ(frequency(&root, "small"), (uint64_t)7);
    CHECK_EQ(root.n, 1U);
}

TEST(the_number_of_drop_ins_is_limited) {
    _cleanup_(root_done) Root root = root_new();
    char name[64];

    for (unsigned i = 0; i < 300; i++) {
        snprintf(name, sizeof(name), "etc/profd/profd.conf.d/%03u.conf", i);
        put(&root, name, "[Profd]\n");
    }
    CHECK_EQ(frequency(&root, NULL), (uint64_t)99);
    CHECK_EQ(root.n, 1U);
    CHECK(strstr(root.last, "44 were left out"));
}

TEST_MAIN()
