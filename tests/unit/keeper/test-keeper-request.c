/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "test.h"

#include <linux/perf_event.h>
#include <time.h>

#include "keeper/request/keeper-request.h"
#include "perfdata/event/format.h"
#include "util/bytes.h"

/* The gate of the keeper: what a recording asks for passes, everything else is told apart. */

static KeeperRequest of_kind(KeeperKind kind) {
    return (KeeperRequest){.protocol = KEEPER_PROTOCOL, .kind = kind};
}

static int check(const KeeperRequest *request) {
    KeeperRequest got = {.kind = 77};
    int r = keeper_request_check(request, sizeof(*request), &got);

    if (r < 0 && got.kind != 77)
        return -EDOM; /* the output was touched */
    return r;
}

static KeeperRequest with_path(KeeperKind kind, const char *path) {
    KeeperRequest request = of_kind(kind);

    snprintf(request.path, sizeof(request.path), "%s", path);
    return request;
}

static KeeperRequest an_event(void) {
    struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
                                   .size = 112,
                                   .config = PERF_COUNT_SW_CPU_CLOCK,
                                   .sample_type = PERF_SAMPLE_IP,
                                   .freq = 1,
                                   .use_clockid = 1,
                                   .clockid = CLOCK_MONOTONIC};
    KeeperRequest request = of_kind(KEEPER_OPEN_EVENT);

    request.event = (KeeperEventData){.pid = -1,
                                      .leader_slot = KEEPER_NO_SLOT,
                                      .output_slot = KEEPER_NO_SLOT,
                                      .ring_bytes = 65536,
                                      .attr_size = 112};
    memcpy(request.event.attr, &attr, 112);
    return request;
}

/* A request of each kind that is right. */
static KeeperRequest good(KeeperKind kind) {
    KeeperRequest request = of_kind(kind);

    switch (kind) {
    case KEEPER_OPEN_EVENT:
        return an_event();
    case KEEPER_OPEN_MEMORY:
        request.event.ring_bytes = 4096;
        return request;
    case KEEPER_READ_NAMESPACES:
        request.pid = 1;
        return request;
    case KEEPER_OPEN_CODE_MAP:
    case KEEPER_READ_PROCESS:
        request.pid = request.tid = 1;
        return request;
    case KEEPER_OPEN_MAPPED:
        request.pid = 1;
        request.end = 4096;
        return request;
    case KEEPER_OPEN_IMAGE:
        request = with_path(kind, "/bin/sh");
        request.pid = 1;
        return request;
    case KEEPER_OPEN_TRACEFS:
        return with_path(kind, "sched/sched_switch/id");
    default:
        return request;
    }
}

static void set_flags(KeeperRequest *request, uint64_t flags) {
    store_u64(request->event.attr + 40, flags, false);
}

TEST(a_valid_request_of_each_kind_passes_and_has_a_name) {
    for (int kind = 0; kind < KEEPER_KINDS; kind++) {
        KeeperRequest request = good((KeeperKind)kind), got;

        CHECK_OK(keeper_request_check(&request, sizeof(request), &got));
        CHECK_EQ(memcmp(&request, &got, sizeof(got)), 0);
        CHECK(strlen(keeper_request_name((KeeperKind)kind)) > 0);
        CHECK_EQ(keeper_request_has_fd((KeeperKind)kind),
                 kind == KEEPER_SEAL || kind == KEEPER_CLOSE);
    }
}

TEST(a_message_of_another_size_kind_or_version_is_refused) {
    KeeperRequest request = of_kind(KEEPER_STATUS), got;
    uint8_t longer[sizeof(request) + 1] = {};

    memcpy(longer, &request, sizeof(request));
    CHECK_EQ(keeper_request_check(&request, 0, &got), -EBADMSG);
    CHECK_EQ(keeper_request_check(&request, 3, &got), -EBADMSG);
    CHECK_EQ(keeper_request_check(&request, sizeof(request) - 1, &got), -EBADMSG);
    CHECK_EQ(keeper_request_check(longer, sizeof(longer), &got), -EBADMSG);
    request.kind = KEEPER_KINDS;
    CHECK_EQ(check(&request), -EBADMSG);
    request.kind = UINT32_MAX;
    CHECK_EQ(check(&request), -EBADMSG);
    request = of_kind(KEEPER_STATUS);
    request.protocol++;
    CHECK_EQ(keeper_request_check(&request, 4, &got), -EPROTO);
    CHECK_EQ(check(&request), -EPROTO);
}

TEST(a_field_that_a_kind_does_not_use_must_be_zero) {
    for (size_t at = 8; at < sizeof(KeeperRequest); at++) {
        KeeperRequest request = of_kind(KEEPER_STATUS);

        ((uint8_t *)&request)[at] = 1;
        CHECK_EQ(check(&request), -EBADMSG);
    }
}

TEST(the_pid_of_a_process_is_above_0) {
    static const KeeperKind of_process[] = {KEEPER_READ_PROCESS, KEEPER_OPEN_MAPPED,
                                            KEEPER_OPEN_IMAGE, KEEPER_READ_NAMESPACES};

    for (size_t i = 0; i < ARRAY_SIZE(of_process); i++) {
        KeeperRequest request = good(of_process[i]);

        request.pid = 0;
        CHECK_EQ(check(&request), -EINVAL);
        request.pid = UINT32_MAX;
        CHECK_EQ(check(&request), -EINVAL);
    }
}

TEST(requests_for_files_of_the_kernel_name_no_process) {
    KeeperRequest request = good(KEEPER_OPEN_FILE);

    request.pid = 1;
    CHECK_EQ(check(&request), -EBADMSG);
    request.pid = 0;
    request.file = KEEPER_PROC;
    CHECK_OK(check(&request));
    request.file = KEEPER_FILES;
    CHECK_EQ(check(&request), -EINVAL);
}

TEST(only_a_request_for_the_mapping_at_an_address_has_one) {
    KeeperRequest request = good(KEEPER_READ_PROCESS);

    request.start = 4096;
    CHECK_EQ(check(&request), -EINVAL);
    request.file = KEEPER_MAPS_ALL;
    CHECK_EQ(check(&request), -EINVAL);
    request.file = KEEPER_MAPS_AT;
    CHECK_OK(check(&request));
    request.end = 8192;
    CHECK_EQ(check(&request), -EINVAL);
    request = good(KEEPER_READ_PROCESS);
    request.file = KEEPER_MAPS_KINDS;
    CHECK_EQ(check(&request), -EINVAL);
    request = good(KEEPER_READ_PROCESS);
    request.tid = 0;
    CHECK_EQ(check(&request), -EINVAL);
}

TEST(a_range_must_have_its_start_before_its_end) {
    KeeperRequest request = good(KEEPER_OPEN_MAPPED);

    request.start = 4096;
    CHECK_EQ(check(&request), -EINVAL);
    request.start = UINT64_MAX;
    CHECK_EQ(check(&request), -EINVAL);
}

TEST(only_plain_tracefs_paths_pass) {
    static const char *const right[] = {"sched/sched_switch/id",
                                        "sched/sched_switch/format",
                                        "raw_syscalls/sys_enter/format",
                                        "header_page",
                                        "header_event",
                                        "../printk_formats",
                                        "../saved_cmdlines",
                                        "sched/",
                                        "./"};
    static const char *const wrong[] = {"",
                                        "/",
                                        "..",
                                        "../..",
                                        "../../etc/shadow",
                                        "../trace",
                                        "../set_event",
                                        "../kprobe_events",
                                        ".",
                                        "sched",
                                        "/sched/",
                                        "//",
                                        "../",
                                        "sched/sched_switch",
                                        "sched/sched_switch/",
                                        "sched/sched_switch/enable",
                                        "sched/sched_switch/id/",
                                        "sched/sched_switch/id/x",
                                        "sched//id",
                                        "sched/../id",
                                        "../sched/id",
                                        "./sched/id",
                                        "sched/.hidden/id",
                                        "sched/sched switch/id",
                                        "sched/\xff/id",
                                        ".hidden"};

    for (size_t i = 0; i < ARRAY_SIZE(right); i++) {
        KeeperRequest request = with_path(KEEPER_OPEN_TRACEFS, right[i]);

        CHECK_OK(check(&request));
    }
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        KeeperRequest request = with_path(KEEPER_OPEN_TRACEFS, wrong[i]);

        CHECK_EQ(check(&request), -EINVAL);
    }
}

TEST(a_path_ends_within_its_field_and_the_rest_is_zero) {
    KeeperRequest request = good(KEEPER_OPEN_IMAGE);

    memset(request.path, 'a', sizeof(request.path));
    CHECK_EQ(check(&request), -EINVAL);
    request.path[sizeof(request.path) - 1] = '\0';
    CHECK_OK(check(&request));
    request.path[10] = '\0';
    CHECK_EQ(check(&request), -EINVAL);
    memset(request.path, 0, sizeof(request.path));
    CHECK_EQ(check(&request), -EINVAL);
}

TEST(only_flags_that_profd_uses_pass) {
    static const uint64_t refused =
        PD_ATTR_ENABLE_ON_EXEC | PD_ATTR_AUX_OUTPUT | PD_ATTR_TEXT_POKE | PD_ATTR_BUILD_ID |
        PD_ATTR_REMOVE_ON_EXEC | PD_ATTR_SIGTRAP | PD_ATTR_DEFER_CALLCHAIN | PD_ATTR_DEFER_OUTPUT;

    for (unsigned bit = 0; bit < 64; bit++) {
        KeeperRequest request = an_event();

        set_flags(&request, 1ULL << bit);
        CHECK_EQ(check(&request), bit >= 38 || refused & 1ULL << bit ? -EPERM : 0);
    }
}

TEST(samples_with_physical_addresses_or_aux_areas_are_refused) {
    for (unsigned bit = 0; bit < 64; bit++) {
        KeeperRequest request = an_event();
        bool is_refused =
            bit >= 25 || 1ULL << bit == PD_SAMPLE_PHYS_ADDR || 1ULL << bit == PD_SAMPLE_AUX;

        store_u64(request.event.attr + 24, 1ULL << bit, false);
        CHECK_EQ(check(&request), is_refused ? -EPERM : 0);
        request = an_event();
        store_u64(request.event.attr + 32, 1ULL << bit, false);
        CHECK_EQ(check(&request), bit >= 5 ? -EPERM : 0);
    }
}

TEST(an_attr_has_its_declared_size_and_zeros_after_it) {
    static const uint32_t sizes[] = {0, 56, 63, 65, 152, 4096, UINT32_MAX};

    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        KeeperRequest request = an_event();

        request.event.attr_size = sizes[i];
        store_u32(request.event.attr + 4, sizes[i], false);
        CHECK_EQ(check(&request), -EINVAL);
    }
    KeeperRequest request = an_event();
    request.event.attr_size = 104;
    CHECK_EQ(check(&request), -EINVAL);
    request = an_event();
    request.event.attr[112] = 1;
    CHECK_EQ(check(&request), -EINVAL);
    request = an_event();
    request.event.reserved = 1;
    CHECK_EQ(check(&request), -EINVAL);
}

TEST(signals_aux_areas_and_other_clocks_are_refused) {
    static const size_t offsets[] = {offsetof(struct perf_event_attr, aux_watermark),
                                     offsetof(struct perf_event_attr, aux_sample_size),
                                     offsetof(struct perf_event_attr, aux_sample_size) + 4,
                                     offsetof(struct perf_event_attr, sig_data)};
    KeeperRequest request;

    for (size_t i = 0; i < ARRAY_SIZE(offsets); i++) {
        request = an_event();
        request.event.attr_size = 128;
        store_u32(request.event.attr + 4, 128, false);
        CHECK_OK(check(&request));
        request.event.attr[offsets[i]] = 1;
        CHECK_EQ(check(&request), -EPERM);
    }
    request = an_event();
    store_u32(request.event.attr + 92, CLOCK_REALTIME, false);
    CHECK_EQ(check(&request), -EPERM);
}

TEST(an_event_is_for_a_cpu_or_a_process_other_than_the_keeper) {
    static const struct {
        int32_t pid, cpu;
        const char *cgroup;
        int expected;
    } rows[] = {
        {-1, 0, "", 0},         {-1, -1, "", -EINVAL},  {0, 0, "", -EINVAL},
        {0, -1, "", -EINVAL},   {7, -1, "", 0},         {7, 3, "", 0},
        {-2, 0, "", -EINVAL},   {-1, -2, "", -EINVAL},  {-1, 0, "a/b", 0},
        {7, 0, "a", -EINVAL},   {-1, 0, "/a", -EINVAL}, {-1, 0, "../a", 0},
        {-1, -1, "a", -EINVAL},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        KeeperRequest request = an_event();

        request.event.pid = rows[i].pid;
        request.event.cpu = rows[i].cpu;
        snprintf(request.path, sizeof(request.path), "%s", rows[i].cgroup);
        CHECK_EQ(check(&request), rows[i].expected);
    }
}

TEST(the_size_of_a_ring_is_a_power_of_two_and_an_event_has_at_most_one) {
    static const uint64_t wrong[] = {1, 4095, 4097, 12288, 512ULL << 20, 1ULL << 63, UINT64_MAX};
    KeeperRequest request = an_event();

    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        request.event.ring_bytes = wrong[i];
        CHECK_EQ(check(&request), -EINVAL);
    }
    request = an_event();
    request.event.output_slot = 3;
    CHECK_EQ(check(&request), -EINVAL);
    request.event.ring_bytes = 0;
    CHECK_OK(check(&request));
    request.event.output_slot = KEEPER_SLOTS_MAX;
    CHECK_EQ(check(&request), -EINVAL);
    request = an_event();
    request.event.leader_slot = KEEPER_SLOTS_MAX;
    CHECK_EQ(check(&request), -EINVAL);
}

TEST(memory_has_whole_pages_a_tag_and_nothing_of_an_event) {
    static const uint64_t wrong[] = {0, 1, 4095, 4097, KEEPER_MEMORY_BYTES_MAX + 4096, UINT64_MAX};
    KeeperRequest request = good(KEEPER_OPEN_MEMORY);

    memset(request.event.tag, 1, sizeof(request.event.tag));
    request.event.ring_bytes = KEEPER_MEMORY_BYTES_MAX;
    CHECK_OK(check(&request));
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        request.event.ring_bytes = wrong[i];
        CHECK_EQ(check(&request), -EINVAL);
    }
    for (size_t at = 0; at < offsetof(KeeperEventData, tag); at++) {
        if (at / 8 == offsetof(KeeperEventData, ring_bytes) / 8)
            continue;
        request = good(KEEPER_OPEN_MEMORY);
        ((uint8_t *)&request.event)[at] = 1;
        CHECK_EQ(check(&request), -EINVAL);
    }
}

TEST(a_code_map_is_asked_for_by_a_pid_or_by_a_mapping) {
    static const struct {
        uint32_t pid, tid;
        uint64_t start, end;
        int result;
    } rows[] = {
        {1, 7, 0, 0, 0},       {1, 0, 4096, 8192, 0},          {0, 7, 0, 0, -EINVAL},
        {1, 0, 0, 0, -EINVAL}, {1, 7, 0, 4096, -EINVAL},       {1, 7, 1, 0, -EINVAL},
        {1, 0, 9, 9, -EINVAL}, {1, UINT32_MAX, 0, 0, -EINVAL},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        KeeperRequest request = of_kind(KEEPER_OPEN_CODE_MAP);

        request.pid = rows[i].pid;
        request.tid = rows[i].tid;
        request.start = rows[i].start;
        request.end = rows[i].end;
        CHECK_EQ(check(&request), rows[i].result);
    }
}

TEST(slots_are_bounded) {
    KeeperRequest request = of_kind(KEEPER_CLOSE_EVENT);

    request.slot = KEEPER_SLOTS_MAX - 1;
    CHECK_OK(check(&request));
    request.slot = KEEPER_SLOTS_MAX;
    CHECK_EQ(check(&request), -EINVAL);
    request.slot = KEEPER_NO_SLOT;
    CHECK_EQ(check(&request), -EINVAL);
    request.kind = KEEPER_NEXT_EVENT;
    CHECK_OK(check(&request));
    request.slot = KEEPER_SLOTS_MAX;
    CHECK_EQ(check(&request), -EINVAL);
}

TEST_MAIN()
