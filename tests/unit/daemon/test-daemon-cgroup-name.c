/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tracker/cgroup-name.h"

#include <limits.h>
#include <sys/stat.h>

#include "make-root.h"
#include "test.h"

/* Paths that the kernel tells, within a namespace that begins at /host/payload and without one. */

typedef struct Inside {
    CgroupNames *names;
    uint64_t root_id, shop_id;
} Inside;

static void inside_done(Inside *f) {
    cgroup_names_free(f->names);
    end_root();
}

static uint64_t id_of(const char *path) {
    char full[PATH_MAX];
    struct stat st = {};

    snprintf(full, sizeof(full), "%s/cg%s", root, path);
    (void)stat(full, &st);
    return st.st_ino;
}

static int inside(Inside *f, bool is_initial) {
    begin_root();
    put("/proc/self/mountinfo", "30 1 0:28 / /cg rw - cgroup2 cgroup2 rw\n");
    put_folder("/cg/system.slice/shop.service");
    f->root_id = id_of("");
    f->shop_id = id_of("/system.slice/shop.service");
    return cgroup_names_new(root, is_initial, &f->names);
}

/* The name that it becomes, until the next call. */
static const char *spell(const Inside *f, uint64_t id, const char *path) {
    static char text[PATH_MAX];
    Bytes spelled = cgroup_names_spell(
        f->names, id, (Bytes){.data = (const uint8_t *)path, .size = strlen(path)});

    snprintf(text, sizeof(text), "%.*s", (int)spelled.size, (const char *)spelled.data);
    return text;
}

TEST(outside_of_a_namespace_paths_are_unchanged) {
    _cleanup_(inside_done) Inside f = {};

    CHECK_OK(inside(&f, true));
    CHECK_STREQ(spell(&f, f.shop_id, "/host/payload/system.slice/shop.service"),
                "/host/payload/system.slice/shop.service");
    CHECK_STREQ(spell(&f, 1, "/"), "/");
}

TEST(within_a_namespace_paths_are_relative_to_its_root_once_it_is_known) {
    _cleanup_(inside_done) Inside f = {};

    CHECK_OK(inside(&f, false));
    /* No group below the mount has this number. */
    CHECK_STREQ(spell(&f, 1, "/host/payload/system.slice/shop.service"),
                "/host/payload/system.slice/shop.service");
    CHECK_STREQ(spell(&f, f.shop_id, "/host/payload/system.slice/shop.service"),
                "/system.slice/shop.service");
    CHECK_STREQ(spell(&f, 1, "/host/payload/gone.slice"), "/gone.slice");
    CHECK_STREQ(spell(&f, f.root_id, "/host/payload"), "/");
    CHECK_STREQ(spell(&f, 1, "/host"), "/..");
    CHECK_STREQ(spell(&f, 1, "/"), "/../..");
    CHECK_STREQ(spell(&f, 1, "/host/payload2/x"), "/../payload2/x");
    CHECK_STREQ(spell(&f, 1, "/user.slice/x"), "/../../user.slice/x");
}

TEST(the_root_group_reveals_the_namespace_too) {
    _cleanup_(inside_done) Inside f = {};

    CHECK_OK(inside(&f, false));
    CHECK_STREQ(spell(&f, f.root_id, "/host/payload"), "/");
    CHECK_STREQ(spell(&f, 1, "/host/payload/x"), "/x");
}

TEST(a_namespace_at_the_root_changes_no_path) {
    _cleanup_(inside_done) Inside f = {};

    CHECK_OK(inside(&f, false));
    CHECK_STREQ(spell(&f, f.shop_id, "/system.slice/shop.service"), "/system.slice/shop.service");
    CHECK_STREQ(spell(&f, f.shop_id, "/host/payload/system.slice/shop.service"),
                "/host/payload/system.slice/shop.service");
}

TEST(texts_that_are_not_paths_are_unchanged) {
    _cleanup_(inside_done) Inside f = {};
    char longest[PATH_MAX + 10];

    memset(longest, '/', sizeof(longest));
    longest[sizeof(longest) - 1] = '\0';
    CHECK_OK(inside(&f, false));
    CHECK_STREQ(spell(&f, f.shop_id, ""), "");
    CHECK_STREQ(spell(&f, f.shop_id, "shop.service"), "shop.service");
    CHECK_EQ(cgroup_names_spell(f.names, f.shop_id,
                                (Bytes){.data = (const uint8_t *)longest, .size = PATH_MAX + 9})
                 .size,
             (size_t)PATH_MAX + 9);
}

TEST_MAIN()
