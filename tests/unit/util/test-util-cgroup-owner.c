/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "util/cgroup-owner.h"

#include "test.h"

/* Paths of control groups as systemd and the runtimes of containers make them. */

#define ID  "3f1c9a0e5b7d2468ace013579bdf02468ace13579bdf02468ace13579bdf0246"
#define ID2 "00000000000000000000000000000000000000000000000000000000000000ff"

static CgroupOwner owner_of(const char *path) {
    CgroupOwner owner;

    cgroup_owner_find((Bytes){.data = (const uint8_t *)path, .size = strlen(path)}, &owner);
    return owner;
}

static bool is(Bytes name, const char *text) {
    return bytes_equal_str(name, text);
}

static bool in_container(const char *path, const char *runtime, const char *container) {
    CgroupOwner owner = owner_of(path);

    return owner.runtime && strcmp(owner.runtime, runtime) == 0 &&
           strcmp(owner.container, container) == 0;
}

TEST(a_unit_is_the_first_that_is_no_slice) {
    CgroupOwner owner = owner_of("/system.slice/system-getty.slice/getty@tty1.service/child");

    CHECK(is(owner.unit, "getty@tty1.service"));
    CHECK(is(owner.slice, "system-getty.slice"));
    CHECK(is(owner.user_unit, ""));
    CHECK(!owner.runtime);
    CHECK(is(owner_of("/init.scope").unit, "init.scope"));
    CHECK(is(owner_of("/payload/system.slice/shop.service").unit, "shop.service"));
    CHECK(is(owner_of("/system.slice/_cpu.service").unit, "cpu.service"));
    CHECK(is(owner_of("/system.slice/a\\x2db.service").unit, "a\\x2db.service"));
}

TEST(a_group_without_a_unit_has_none) {
    CHECK(is(owner_of("").unit, ""));
    CHECK(is(owner_of("/").unit, ""));
    CHECK(is(owner_of("/system.slice").unit, ""));
    CHECK(is(owner_of("/system.slice").slice, "system.slice"));
    CHECK(is(owner_of("/.service").unit, ""));
    CHECK(is(owner_of("/shop").unit, ""));
}

TEST(the_path_of_no_group_has_no_owner) {
    CgroupOwner owner;

    cgroup_owner_find((Bytes){}, &owner);
    CHECK(owner.unit.size == 0 && owner.slice.size == 0 && !owner.runtime);
    cgroup_owner_find((Bytes){.data = (const uint8_t *)"//", .size = 2}, &owner);
    CHECK(owner.unit.size == 0 && owner.slice.size == 0 && !owner.runtime);
}

TEST(units_of_a_user_are_below_the_manager_of_the_user) {
    CgroupOwner owner =
        owner_of("/user.slice/user-1000.slice/user@1000.service/app.slice/editor.service");

    CHECK(is(owner.unit, "user@1000.service"));
    CHECK(is(owner.user_unit, "editor.service"));
    CHECK(is(owner.slice, "user-1000.slice"));
    owner = owner_of("/user.slice/user-1000.slice/session-3.scope");
    CHECK(is(owner.unit, "session-3.scope"));
    CHECK(is(owner.user_unit, ""));
    CHECK(is(owner_of("/system.slice/a.service/b.service").user_unit, ""));
}

TEST(each_runtime_is_known_by_its_groups) {
    CHECK(in_container("/system.slice/docker-" ID ".scope", "docker", ID));
    CHECK(in_container("/docker/" ID, "docker", ID));
    CHECK(in_container("/docker/" ID "/system.slice/x.service", "docker", ID));
    CHECK(in_container("/system.slice/nerdctl-" ID ".scope", "containerd", ID));
    CHECK(in_container("/machine.slice/libpod-" ID ".scope/container", "podman", ID));
    CHECK(in_container("/libpod_parent/libpod-" ID, "podman", ID));
    CHECK(in_container("/lxc/web", "lxc", "web"));
    CHECK(in_container("/lxc.payload.web/system.slice", "lxc", "web"));
    CHECK(in_container("/machine.slice/machine-a\\x2db.scope/payload", "nspawn", "a-b"));
    CHECK(in_container("/machine.slice/systemd-nspawn@web.service/payload", "nspawn", "web"));
}

TEST(helpers_of_a_runtime_are_not_in_the_container) {
    CHECK(!owner_of("/machine.slice/libpod-conmon-" ID ".scope").runtime);
    CHECK(!owner_of("/system.slice/crio-conmon-" ID ".scope").runtime);
    CHECK(!owner_of("/lxc.monitor.web").runtime);
    CHECK(!owner_of("/system.slice/docker.service").runtime);
    CHECK(!owner_of("/system.slice/docker-1234.scope").runtime);
    CHECK(!owner_of("/docker/buildx").runtime);
}

TEST(a_pod_has_its_uid_with_dashes) {
#define UID "8c1f0a52-7d1b-4e0e-9a3c-0123456789ab"
    static const char by_systemd[] =
        "/kubepods.slice/kubepods-burstable.slice/"
        "kubepods-burstable-pod8c1f0a52_7d1b_4e0e_9a3c_0123456789ab.slice/"
        "cri-containerd-" ID ".scope";

    CHECK(in_container(by_systemd, "containerd", ID));
    CHECK_STREQ(owner_of(by_systemd).pod, UID);
    CHECK(in_container("/kubepods/besteffort/pod" UID "/" ID, "kubernetes", ID));
    CHECK_STREQ(owner_of("/kubepods/besteffort/pod" UID "/" ID).pod, UID);
    CHECK_STREQ(owner_of("/kubepods/pod0123456789abcdef0123456789abcdef/" ID).pod,
                "0123456789abcdef0123456789abcdef");
    CHECK_STREQ(owner_of("/kubepods/podcast/" ID).pod, "");
    CHECK(!owner_of("/kubepods/podcast/" ID).runtime);
    CHECK(in_container("/kubepods.slice/kubepods-pod8c1f0a52_7d1b_4e0e_9a3c_0123456789ab.slice/"
                       "crio-" ID ".scope",
                       "cri-o", ID));
}

TEST(of_nested_containers_the_innermost_counts) {
    CHECK(in_container("/system.slice/docker-" ID ".scope/docker/" ID2, "docker", ID2));
    CHECK(in_container("/machine.slice/machine-web.scope/payload/system.slice/docker-" ID ".scope",
                       "docker", ID));
    CHECK(is(owner_of("/machine.slice/machine-web.scope/payload/system.slice/shop.service").unit,
             "machine-web.scope"));
}

TEST(hostile_names_are_bounded) {
    char path[1024];

    memcpy(path, "/lxc/", 5);
    memset(path + 5, 'a', sizeof(path) - 6);
    path[sizeof(path) - 1] = '\0';
    CHECK(!owner_of(path).runtime);
    path[5 + CGROUP_CONTAINER_MAX - 1] = '\0';
    CHECK(in_container(path, "lxc", path + 5));
    CHECK(in_container("/lxc/a\\x", "lxc", "a\\x"));
    CHECK(in_container("/lxc/a\\x00b", "lxc", "a\\x00b"));
    CHECK(in_container("/lxc/\xff\x1b", "lxc", "\xff\x1b"));
    CHECK_STREQ(owner_of("/kubepods/pod" ID "/" ID).pod, "");
}

TEST_MAIN()
