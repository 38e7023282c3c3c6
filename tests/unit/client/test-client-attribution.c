/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/file/attribution.h"

#include "perfdata/writer/emit.h"

#include "test.h"

/* Recordings as streams in memory: side-band after the samples it belongs to in the file, before
 * them in time. */

static const PdAttr attr = {.type = PD_TYPE_SOFTWARE,
                            .sample_type = PD_SAMPLE_IDENTIFIER | PD_SAMPLE_IP | PD_SAMPLE_TID |
                                           PD_SAMPLE_TIME,
                            .flags = PD_ATTR_SAMPLE_ID_ALL};

static void head(Buffer *b, uint32_t type, uint16_t misc, size_t size) {
    buffer_u32(b, type, false);
    buffer_u16(b, misc, false);
    buffer_u16(b, (uint16_t)size, false);
}

static void begin(Buffer *b) {
    buffer_u64(b, PD_MAGIC_2, false);
    buffer_u64(b, PD_PIPE_HEADER_SIZE, false);
    head(b, PD_RECORD_HEADER_ATTR, 0, 8 + 64 + 8);
    pd_attr_encode(&attr, 64, b, false);
    buffer_u64(b, 11, false);
}

static void sample(Buffer *b, uint32_t pid, uint64_t time, uint64_t ip) {
    head(b, PD_RECORD_SAMPLE, ip >> 63 ? PD_MISC_KERNEL : PD_MISC_USER, 40);
    buffer_u64(b, 11, false);
    buffer_u64(b, ip, false);
    buffer_u32(b, pid, false);
    buffer_u32(b, pid, false);
    buffer_u64(b, time, false);
}

static PdTrailer at(uint32_t pid, uint64_t time) {
    return (PdTrailer){
        .sample_type = attr.sample_type, .id = 11, .time = time, .pid = pid, .tid = pid};
}

static Bytes text(const char *s) {
    return (Bytes){.data = (const uint8_t *)s, .size = strlen(s)};
}

static void comm(Buffer *b, uint32_t pid, uint64_t time, const char *name, bool exec) {
    PdTrailer trailer = at(pid, time);
    PdComm c = {.pid = pid, .tid = pid, .exec = exec, .comm = text(name)};

    pd_emit_comm(b, &trailer, &c);
}

static void mapping(Buffer *b, uint32_t pid, uint64_t time, uint64_t start, const char *name) {
    PdTrailer trailer = at(pid, time);
    PdMmap m = {.pid = pid,
                .tid = pid,
                .start = start,
                .length = 0x1000,
                .prot = 5,
                .filename = text(name)};

    pd_emit_mmap2(b, &trailer, start >> 63 ? PD_MISC_KERNEL : PD_MISC_USER, &m);
}

static void exits(Buffer *b, uint32_t pid, uint64_t time) {
    PdTrailer trailer = at(pid, time);
    PdTask t = {.pid = pid, .tid = pid, .ppid = 1, .ptid = 1, .time = time};

    pd_emit_task(b, &trailer, PD_RECORD_EXIT, 0, &t);
}

static int count(const Buffer *b, PdReader **ret_reader, Attribution **ret) {
    PdRecord record;
    PdStamp stamp;
    int r = pd_reader_open_memory(buffer_bytes(b), NULL, ret_reader, NULL);

    if (r >= 0)
        r = attribution_new(*ret_reader, ret);
    while (r >= 0 && (r = pd_reader_next(*ret_reader, &record)) > 0) {
        r = pd_events_stamp(pd_reader_events(*ret_reader), &record, &stamp);
        if (r >= 0)
            r = attribution_add(*ret, &record, &stamp);
    }
    return r < 0 ? r : attribution_finish(*ret);
}

static bool share_is(const Share *s, const char *name, const char *dso, uint64_t samples) {
    return bytes_equal_str(s->comm, name) && bytes_equal_str(s->dso, dso) && s->samples == samples;
}

TEST(samples_belong_to_the_names_of_their_time) {
    _cleanup_(attribution_freep) Attribution *a = NULL;
    _cleanup_(pd_reader_freep) PdReader *reader = NULL;
    _cleanup_(buffer_done) Buffer b = {};
    Share top[8];

    begin(&b);
    sample(&b, 5, 100, 0x1100);
    sample(&b, 5, 200, 0x1100);
    sample(&b, 5, 210, 0x1200);
    sample(&b, 5, 50, 0x1100);
    mapping(&b, -1U, 1, 0xffffffff81000000, "[kernel.kallsyms]_text");
    comm(&b, 5, 90, "sh", false);
    mapping(&b, 5, 91, 0x1000, "/bin/sh");
    comm(&b, 5, 150, "ls", true);
    mapping(&b, 5, 151, 0x1000, "/bin/ls");
    sample(&b, 5, 155, 0xffffffff81000100);
    exits(&b, 5, 300);
    sample(&b, 5, 301, 0xffffffff81000100);
    CHECK_OK(count(&b, &reader, &a));
    CHECK_EQ(attribution_top_dsos(a, top, 8), 5);
    CHECK(share_is(&top[0], "ls", "/bin/ls", 2));
    CHECK(share_is(&top[1], ":5", "[kernel.kallsyms]", 1));
    CHECK(share_is(&top[2], ":5", "[unknown]", 1));
    CHECK(share_is(&top[3], "ls", "[kernel.kallsyms]", 1));
    CHECK(share_is(&top[4], "sh", "/bin/sh", 1));
    CHECK_EQ(attribution_top_comms(a, top, 2), 2);
    CHECK(share_is(&top[0], "ls", "", 3));
    CHECK(share_is(&top[1], ":5", "", 2));
}

TEST(distinct_names_are_bounded_and_the_rest_is_counted) {
    _cleanup_(attribution_freep) Attribution *a = NULL;
    _cleanup_(pd_reader_freep) PdReader *reader = NULL;
    _cleanup_(buffer_done) Buffer b = {};
    Share top[3];

    begin(&b);
    for (uint32_t pid = 1; pid <= 70000; pid++)
        sample(&b, pid, 1000 + pid, 0x1000);
    for (uint64_t i = 0; i < 10; i++)
        sample(&b, 7, 100000 + i, 0x1000);
    CHECK_OK(count(&b, &reader, &a));
    CHECK_EQ(attribution_uncounted(a), 70000U - 65536U);
    CHECK_EQ(attribution_top_comms(a, top, 3), 3);
    CHECK(share_is(&top[0], ":7", "", 11));
    CHECK(share_is(&top[1], ":1", "", 1));
}

TEST(a_recording_without_samples_has_no_shares) {
    _cleanup_(attribution_freep) Attribution *a = NULL;
    _cleanup_(pd_reader_freep) PdReader *reader = NULL;
    _cleanup_(buffer_done) Buffer b = {};
    Share top[3];

    begin(&b);
    comm(&b, 5, 90, "sh", false);
    CHECK_OK(count(&b, &reader, &a));
    CHECK_EQ(attribution_top_comms(a, top, 3), 0);
    CHECK_EQ(attribution_top_dsos(a, top, 3), 0);
}

TEST_MAIN()
