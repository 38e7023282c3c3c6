/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "make-served.h"

#include <linux/perf_event.h>
#include <sys/mman.h>
#include <time.h>

#include "perfdata/event/format.h"
#include "util/bytes.h"

/* Events that the keeper opens, and those that it refuses. */

static KeeperEvent clock_event(void) {
    struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
                                   .size = PERF_ATTR_SIZE_VER5,
                                   .config = PERF_COUNT_SW_CPU_CLOCK,
                                   .sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TIME,
                                   .sample_period = 1000000,
                                   .use_clockid = 1,
                                   .clockid = CLOCK_MONOTONIC};
    KeeperEvent event = {.attr_size = sizeof(attr) < KEEPER_ATTR_MAX ? PERF_ATTR_SIZE_VER5 : 0,
                         .pid = -1,
                         .cpu = 0,
                         .leader_slot = KEEPER_NO_SLOT,
                         .output_slot = KEEPER_NO_SLOT,
                         .ring_bytes = RING_BYTES,
                         .tag = "a tag"};

    memcpy(event.attr, &attr, PERF_ATTR_SIZE_VER5);
    return event;
}

static void *map(int fd) {
    void *memory = mmap(NULL, RING_BYTES + (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE,
                        MAP_SHARED, fd, 0);

    return memory == MAP_FAILED ? NULL : memory;
}

static void unmap(void *memory) {
    if (memory)
        (void)munmap(memory, RING_BYTES + (size_t)sysconf(_SC_PAGESIZE));
}

static uint64_t head_of(const struct perf_event_mmap_page *control) {
    return __atomic_load_n(&control->data_head, __ATOMIC_ACQUIRE);
}

/* Until the kernel wrote more than `above`; a clock ticks, so it will. */
static bool wait_for_head(const struct perf_event_mmap_page *control, uint64_t above) {
    for (int i = 0; i < 1000 && head_of(control) <= above; i++)
        (void)usleep(10000);
    return head_of(control) > above;
}

TEST(a_ring_outlives_its_recorder_and_is_read_from_the_same_position) {
    struct perf_event_mmap_page *control;
    KeeperEvent event = clock_event(), found;
    uint32_t slot, at = KEEPER_NO_SLOT;
    uint64_t taken;
    Served served;
    int fd, r;

    CHECK_OK(served_begin(&served));
    r = keeper_open_event(served.keeper, &event, &slot, &fd);
    if (r == -EACCES || r == -EPERM) {
        (void)served_end(&served);
        TEST_SKIP("the kernel refuses perf events");
    }
    CHECK_OK(r);
    control = map(fd);
    CHECK(control != NULL);
    CHECK(wait_for_head(control, 0));
    taken = head_of(control);
    __atomic_store_n(&control->data_tail, taken, __ATOMIC_RELEASE);
    unmap(control);
    (void)close(fd);

    CHECK_OK(reconnect(&served));
    CHECK_EQ(keeper_next_event(served.keeper, &at, &found, &fd), 1);
    CHECK_EQ(at, slot);
    CHECK_EQ(found.cpu, 0);
    CHECK_EQ(found.pid, -1);
    CHECK_EQ(found.ring_bytes, RING_BYTES);
    CHECK_EQ(found.attr_size, event.attr_size);
    CHECK_EQ(memcmp(found.attr, event.attr, KEEPER_ATTR_MAX), 0);
    CHECK_STREQ((const char *)found.tag, "a tag");
    control = map(fd);
    CHECK(control != NULL);
    CHECK_EQ(control->data_tail, taken);
    CHECK(wait_for_head(control, taken));
    CHECK_EQ(((struct perf_event_header *)((uint8_t *)control + control->data_offset +
                                           taken % RING_BYTES))
                 ->type,
             PERF_RECORD_SAMPLE);
    unmap(control);
    (void)close(fd);
    CHECK_EQ(keeper_next_event(served.keeper, &at, &found, &fd), 0);
    CHECK_OK(keeper_close_event(served.keeper, slot));
    CHECK_EQ(keeper_close_event(served.keeper, slot), -ENOENT);
    at = KEEPER_NO_SLOT;
    CHECK_EQ(keeper_next_event(served.keeper, &at, &found, &fd), 0);
    CHECK_EQ(served_end(&served), 0);
}

TEST(memory_outlives_its_recorder_and_keeps_its_size) {
    static const uint8_t tag[KEEPER_TAG_SIZE] = "a tag";
    uint32_t slot, at = KEEPER_NO_SLOT;
    KeeperEvent found;
    Served served;
    uint8_t *memory;
    int fd;

    CHECK_OK(served_begin(&served));
    CHECK_OK(keeper_open_memory(served.keeper, 2 * RING_BYTES, tag, &slot, &fd));
    CHECK(ftruncate(fd, RING_BYTES) < 0);
    CHECK(ftruncate(fd, 4 * RING_BYTES) < 0);
    memory = mmap(NULL, 2 * RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(memory != MAP_FAILED);
    CHECK_EQ(memory[2 * RING_BYTES - 1], 0);
    memory[2 * RING_BYTES - 1] = 77;
    (void)munmap(memory, 2 * RING_BYTES);
    (void)close(fd);

    CHECK_OK(reconnect(&served));
    CHECK_EQ(keeper_next_event(served.keeper, &at, &found, &fd), 1);
    CHECK_EQ(at, slot);
    CHECK_EQ(found.attr_size, 0U);
    CHECK_EQ(found.ring_bytes, 2 * RING_BYTES);
    CHECK_EQ(memcmp(found.tag, tag, sizeof(tag)), 0);
    memory = mmap(NULL, 2 * RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(memory != MAP_FAILED);
    CHECK_EQ(memory[2 * RING_BYTES - 1], 77);
    (void)munmap(memory, 2 * RING_BYTES);
    (void)close(fd);
    CHECK_OK(keeper_close_event(served.keeper, slot));
    at = KEEPER_NO_SLOT;
    CHECK_EQ(keeper_next_event(served.keeper, &at, &found, &fd), 0);
    CHECK_EQ(served_end(&served), 0);
}

TEST(memory_is_bounded_together_with_the_rings) {
    static const uint8_t tag[KEEPER_TAG_SIZE] = "a tag";
    uint64_t all = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) / 16,
             most = MAX(all, 1ULL << 30) / (64 << 20), n = 0;
    uint32_t slot = 0;
    Served served;
    int fd, r;

    CHECK_OK(served_begin(&served));
    while (n <= most && (r = keeper_open_memory(served.keeper, 64 << 20, tag, &slot, &fd)) == 0) {
        (void)close(fd);
        n++;
    }
    CHECK_EQ(n, most);
    CHECK_EQ(r, -ENOBUFS);
    CHECK_OK(keeper_close_event(served.keeper, slot));
    CHECK_OK(keeper_open_memory(served.keeper, 64 << 20, tag, &slot, &fd));
    (void)close(fd);
    CHECK_EQ(served_end(&served), 0);
}

TEST(a_second_event_shares_the_ring_and_the_group_of_the_first) {
    KeeperEvent first = clock_event(), second = clock_event();
    uint32_t slots[2];
    KeeperStatus status;
    Served served;
    int fds[2], r;

    CHECK_OK(served_begin(&served));
    r = keeper_open_event(served.keeper, &first, &slots[0], &fds[0]);
    if (r == -EACCES || r == -EPERM) {
        (void)served_end(&served);
        TEST_SKIP("the kernel refuses perf events");
    }
    CHECK_OK(r);
    second.ring_bytes = 0;
    second.output_slot = second.leader_slot = slots[0];
    CHECK_OK(keeper_open_event(served.keeper, &second, &slots[1], &fds[1]));
    CHECK(slots[0] != slots[1]);
    CHECK_OK(keeper_status(served.keeper, &status));
    CHECK_EQ(status.n_events, 2);
    CHECK_EQ(status.restarts, 0);
    second.output_slot = 500;
    CHECK_EQ(keeper_open_event(served.keeper, &second, &slots[1], &fds[1]), -EBADF);
    (void)close(fds[0]);
    (void)close(fds[1]);
    CHECK_EQ(served_end(&served), 0);
}

TEST(events_of_kinds_that_profd_never_records_are_refused) {
    KeeperEvent event = clock_event();
    Served served;
    uint32_t slot;
    int fd;

    CHECK_OK(served_begin(&served));
    store_u64(event.attr + 40, load_u64(event.attr + 40, false) | PD_ATTR_BUILD_ID, false);
    CHECK_EQ(keeper_open_event(served.keeper, &event, &slot, &fd), -EPERM);
    event = clock_event();
    store_u32(event.attr, 4000000, false); /* a type that no PMU has */
    CHECK_EQ(keeper_open_event(served.keeper, &event, &slot, &fd), -ENOENT);
    event = clock_event();
    event.cgroup = "../../../etc";
    CHECK(keeper_open_event(served.keeper, &event, &slot, &fd) < 0);
    event = clock_event();
    event.attr_size = 4096;
    CHECK_EQ(keeper_open_event(served.keeper, &event, &slot, &fd), -EINVAL);
    CHECK_EQ(served_end(&served), 0);
}

TEST(a_cgroup_is_found_by_its_path_below_the_root) {
    KeeperEvent event = clock_event();
    char name[64], up[160];
    KeeperHost host;
    Served served;
    uint32_t slot;
    int fd = -1;

    if (geteuid() != 0)
        TEST_SKIP("needs root to make a cgroup");
    keeper_host_find(&host);
    snprintf(name, sizeof(name), "test-keeper-%d", (int)getpid());
    snprintf(up, sizeof(up), "%s/../%s", name, name);
    if (host.cgroup < 0 || mkdirat(host.cgroup, name, 0755) < 0) {
        keeper_host_done(&host);
        TEST_SKIP("no cgroup can be made, which takes root and a hierarchy for perf events");
    }
    event.cgroup = name;
    CHECK_OK(served_begin(&served));
    CHECK_OK(keeper_open_event(served.keeper, &event, &slot, &fd));
    CHECK_OK(keeper_close_event(served.keeper, slot));
    closep(&fd);
    event.cgroup = up; /* stays below */
    CHECK_OK(keeper_open_event(served.keeper, &event, &slot, &fd));
    CHECK_OK(keeper_close_event(served.keeper, slot));
    closep(&fd);
    event.cgroup = "../../../proc";
    CHECK_EQ(keeper_open_event(served.keeper, &event, &slot, &fd), -EXDEV);
    event.cgroup = "nowhere";
    CHECK_EQ(keeper_open_event(served.keeper, &event, &slot, &fd), -ENOENT);
    event.cgroup = "cgroup.procs";
    CHECK_EQ(keeper_open_event(served.keeper, &event, &slot, &fd), -ENOTDIR);
    CHECK_EQ(served_end(&served), 0);
    (void)unlinkat(host.cgroup, name, AT_REMOVEDIR);
    keeper_host_done(&host);
}

static int probe_type(const char *pmu, uint32_t *ret) {
    char path[128], text[32];
    int r;

    snprintf(path, sizeof(path), "/sys/bus/event_source/devices/%s/type", pmu);
    r = file_read_text(path, text, sizeof(text));
    if (r >= 0)
        *ret = (uint32_t)strtoul(text, NULL, 10);
    return r;
}

TEST(a_probe_with_a_pointer_to_the_keepers_memory_is_refused) {
    static const char *const pmus[] = {"kprobe", "uprobe"};
    KeeperEvent event = clock_event();
    uint32_t type, slot;
    Served served;
    int fd;

    CHECK_OK(served_begin(&served));
    for (size_t i = 0; i < ARRAY_SIZE(pmus); i++) {
        if (probe_type(pmus[i], &type) < 0)
            continue; /* a kernel may have only one of them */
        store_u32(event.attr, type, false);
        CHECK_EQ(keeper_open_event(served.keeper, &event, &slot, &fd), -ENOENT);
    }
    CHECK_EQ(served_end(&served), 0);
}

TEST_MAIN()
