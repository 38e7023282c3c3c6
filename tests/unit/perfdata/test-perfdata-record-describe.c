/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/describe/record-describe.h"
#include "util/text.h"

#include "make-body.h"
#include "test.h"

/* Records of every type as people see them: both byte orders, whole and cut off anywhere. */

/* clang-format off */
static const struct {
    uint32_t type;
    uint16_t misc;
    void (*make)(Make *m);
    const char *expect; /* behind the header */
} rows[] = {
    {PD_RECORD_MMAP, PD_MISC_KERNEL | PD_MISC_MMAP_DATA, make_mmap,
     "pid 12 tid -1 start 0x400000 length 0x1000 pgoff 0x2000 data yes filename /bin/true"},
    {PD_RECORD_LOST, 0, make_two, "lost_id 5 lost 77"},
    {PD_RECORD_COMM, PD_MISC_COMM_EXEC, make_comm, "pid 20 tid 21 exec yes comm sh"},
    {PD_RECORD_EXIT, 0, make_task, "pid 20 tid 21 ppid 10 ptid 11 task_time 1.000000001"},
    {PD_RECORD_THROTTLE, 0, make_three, "throttle_time 0.000000005 throttle_id 6 stream_id 7"},
    {PD_RECORD_UNTHROTTLE, 0, make_three, "throttle_time 0.000000005 throttle_id 6 stream_id 7"},
    {PD_RECORD_FORK, 0, make_task, "pid 20 tid 21 ppid 10 ptid 11 task_time 1.000000001"},
    {PD_RECORD_READ, 0, make_read, "pid 20 tid 21 read {time_enabled 30 values [{value 1000 id 8}]}"},
    {PD_RECORD_MMAP2, PD_MISC_USER, make_mmap2,
     "pid 12 tid 13 start 0x400000 length 0x1000 pgoff 0x2000 major 8 minor 1 inode 4711 "
     "generation 99 prot r-xp flags 0x2 filename /bin/\\xff"},
    {PD_RECORD_MMAP2, PD_MISC_USER | PD_MISC_MMAP_BUILD_ID, make_mmap2_build_id,
     "pid 12 tid 13 start 0x400000 length 0x1000 pgoff 0x2000 "
     "build_id 3031323334353637383930313233343536373839 prot rwxs flags 0x1 filename //anon"},
    {PD_RECORD_AUX, 0, make_three, "aux_offset 0x5 aux_size 0x6 aux_flags [truncated overwrite partial]"},
    {PD_RECORD_ITRACE_START, 0, make_pid_tid, "pid 20 tid 21"},
    {PD_RECORD_LOST_SAMPLES, 0, make_tracing_data, NULL},
    {PD_RECORD_SWITCH, PD_MISC_SWITCH_OUT | PD_MISC_SWITCH_OUT_PREEMPT, make_nothing,
     "switch out preempt yes"},
    {PD_RECORD_SWITCH_CPU_WIDE, PD_MISC_SWITCH_OUT, make_pid_tid, "switch out next_pid 20 next_tid 21"},
    {PD_RECORD_SWITCH_CPU_WIDE, 0, make_pid_tid, "switch in prev_pid 20 prev_tid 21"},
    {PD_RECORD_NAMESPACES, 0, make_namespaces,
     "pid 20 tid 21 namespaces [{name net device 4 inode 4026531840} "
     "{name uts device 4 inode 4026531838}]"},
    {PD_RECORD_KSYMBOL, 0, make_ksymbol,
     "addr 0xffffffffc0000000 length 0x100 ksym_type bpf flags [unregister] name bpf_prog_x"},
    {PD_RECORD_BPF_EVENT, 0, make_bpf_event, "bpf_type unload flags 0x0 prog_id 33 tag 7461677461677461"},
    {PD_RECORD_CGROUP, 0, make_cgroup, "cgroup 4242 path /user.slice"},
    {PD_RECORD_TEXT_POKE, 0, make_text_poke, "addr 0xffffffff81000000 old_bytes 0f1f new_bytes cc"},
    {PD_RECORD_AUX_OUTPUT_HW_ID, 0, make_end_of_features, "hw_id 0x20"},
    {PD_RECORD_CALLCHAIN_DEFERRED, 0, make_deferred,
     "cookie 0xc00c1e chain [PERF_CONTEXT_USER 0x400100 0x400200]"},
    {PD_RECORD_EVENT_TYPE, 0, make_event_type, "event_id 3 name cycles"},
    {PD_RECORD_TRACING_DATA, 0, make_tracing_data, "tracing_size 12345"},
    {PD_RECORD_BUILD_ID, PD_MISC_USER | PD_MISC_BUILD_ID_SIZE, make_build_id,
     "pid -1 build_id 30313233343536373839303132333435 filename [vdso]"},
    {PD_RECORD_BUILD_ID, PD_MISC_KERNEL, make_build_id,
     "pid -1 build_id 3031323334353637383930313233343536373839 filename [vdso]"},
    {PD_RECORD_FINISHED_ROUND, 0, make_nothing, ""},
    {PD_RECORD_ID_INDEX, 0, make_id_index, "entries [{id 143 idx 2 cpu 3 tid -1}]"},
    {PD_RECORD_ID_INDEX, 0, make_id_index_guest,
     "entries [{id 143 idx 2 cpu 3 tid -1 machine_pid 900 vcpu 1}]"},
    {PD_RECORD_AUXTRACE_INFO, 0, make_auxtrace_info, "auxtrace_type intel_pt priv [0x8 0xff]"},
    {PD_RECORD_AUXTRACE, 0, make_auxtrace,
     "aux_size 0x1000 aux_offset 0x2000 reference 0x3000 idx 1 tid -1 cpu 2"},
    {PD_RECORD_AUXTRACE_ERROR, 0, make_auxtrace_error_0,
     "error_type instruction_trace code 5 cpu 2 pid 20 tid 21 ip 0x400000 message Overflow"},
    {PD_RECORD_AUXTRACE_ERROR, 0, make_auxtrace_error_2,
     "error_type instruction_trace code 5 time 1.000000001 cpu 2 pid 20 tid 21 ip 0x400000 "
     "machine_pid 900 vcpu 1 message Overflow"},
    {PD_RECORD_THREAD_MAP, 0, make_thread_map,
     "threads [{tid 175 comm sleep} {tid -1 comm sixteen letters!}]"},
    {PD_RECORD_CPU_MAP, 0, make_cpu_list, "encoding list cpus -1,0-2,9"},
    {PD_RECORD_CPU_MAP, 0, make_no_cpus, "encoding list cpus "},
    {PD_RECORD_CPU_MAP, 0, make_cpu_mask32, "encoding mask cpus 0,31-32,34"},
    {PD_RECORD_CPU_MAP, 0, make_cpu_mask64, "encoding mask cpus 0,63-65"},
    {PD_RECORD_CPU_MAP, 0, make_cpu_range, "encoding range cpus -1,0-1023"},
    {PD_RECORD_STAT_CONFIG, 0, make_stat_config,
     "config [{tag interval value 1000} {tag 77 value 6}]"},
    {PD_RECORD_STAT, 0, make_stat, "id 313 cpu -1 thread 0 value 1 enabled 2 running 3"},
    {PD_RECORD_STAT_ROUND, 0, make_stat_round, "round final time 0.020649890"},
    {PD_RECORD_EVENT_UPDATE, 0, make_update_name, "id 9 update name name cpu/x/"},
    {PD_RECORD_EVENT_UPDATE, 0, make_update_scale, "id 9 update scale scale 0.5"},
    {PD_RECORD_EVENT_UPDATE, 0, make_update_cpus, "id 9 update cpus encoding range cpus -1,0-1023"},
    {PD_RECORD_TIME_CONV, 0, make_three, "time_shift 5 time_mult 6 time_zero 7"},
    {PD_RECORD_TIME_CONV, 0, make_time_conv_long,
     "time_shift 5 time_mult 6 time_zero 7 time_cycles 8 time_mask 0xff cap_user_time_zero 1 "
     "cap_user_time_short 0"},
    {PD_RECORD_HEADER_FEATURE, 0, make_feature, "feature 3 name HOSTNAME body_size 4"},
    {PD_RECORD_HEADER_FEATURE, 0, make_end_of_features, "feature 32 body_size 0"},
    {PD_RECORD_COMPRESSED, 0, make_two, "frame_size 16"},
    {PD_RECORD_FINISHED_INIT, 0, make_nothing, ""},
    {PD_RECORD_COMPRESSED2, 0, make_compressed2, "frame_size 3"},
    {PD_RECORD_BPF_METADATA, 0, make_bpf_metadata,
     "prog_name bpf_prog_1_x entries [{key version value 1.2}]"},
    {PD_RECORD_SCHEDSTAT_CPU, 0, make_schedstat, "timestamp 99 cpu 3 version 15 counters 0102"},
    {PD_RECORD_SCHEDSTAT_DOMAIN, 0, make_schedstat,
     "timestamp 99 cpu 3 version 15 domain 1 counters 0102"},
    {PD_RECORD_HEADER_ATTR, 0, make_header_attr, NULL},
    {PD_RECORD_SIMPLEPERF + 2, 0, make_tracing_data, NULL},
    {5000, 0, make_tracing_data, NULL},
};
/* clang-format on */

static const PdEvent event = {
    .attr.read_format = PD_FORMAT_TOTAL_TIME_ENABLED | PD_FORMAT_ID,
    .name = (char *)"cycles",
};

/* The description, NUL-terminated, valid until the next call. */
static const char *described(const PdRecord *r, const PdStamp *stamp, FieldsFormat format) {
    static Buffer b;
    Fields f;

    buffer_clear(&b);
    f = fields_to(&b, format);
    fields_begin_object(&f, NULL);
    pd_record_describe(r, stamp, NULL, &f);
    fields_end_object(&f);
    text_putc(&b, '\0');
    assert(buffer_error(&b) == 0);
    return (const char *)b.data;
}

/* The text behind size, misc and cpumode. */
static const char *behind_header(const char *s) {
    const char *p = strstr(s, " cpumode ");

    p = p ? strchr(p + strlen(" cpumode "), ' ') : strchr(strstr(s, " misc ") + 6, ' ');
    return p ? p + 1 : "";
}

TEST(every_body_is_described_in_both_byte_orders) {
    PdStamp stamp = {.event = NULL};

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        for (unsigned swap = 0; swap < 2; swap++) {
            _cleanup_(make_done) Make m = {.swap = swap};
            PdEvent nameless = event;
            PdRecord r;

            if (!rows[i].expect)
                continue;
            nameless.name = NULL;
            stamp.event = rows[i].type < PD_RECORD_USER ? &nameless : NULL;
            rows[i].make(&m);
            r = make_record(&m, rows[i].type, rows[i].misc);
            CHECK_STREQ(behind_header(described(&r, &stamp, FIELDS_TEXT)), rows[i].expect);
        }
}

/* A cheap look at JSON: brackets pair, strings end. */
static bool is_balanced(const char *s) {
    char open[64];
    size_t n = 0;
    bool quoted = false;

    for (; *s; s++) {
        if (quoted && *s == '\\' && s[1])
            s++;
        else if (*s == '"')
            quoted = !quoted;
        else if (!quoted && (*s == '{' || *s == '[') && n < sizeof(open))
            open[n++] = *s == '{' ? '}' : ']';
        else if (!quoted && (*s == '}' || *s == ']') && (n == 0 || open[--n] != *s))
            return false;
    }
    return n == 0 && !quoted;
}

TEST(a_record_truncated_anywhere_is_still_described) {
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        for (unsigned swap = 0; swap < 2; swap++) {
            _cleanup_(make_done) Make m = {.swap = swap};
            PdStamp stamp = {.event = rows[i].type < PD_RECORD_USER ? &event : NULL};

            rows[i].make(&m);
            for (size_t n = 0; n <= m.body.size; n++) {
                PdRecord r = make_cut(&m, rows[i].type, rows[i].misc, n);

                CHECK(is_balanced(described(&r, &stamp, FIELDS_JSON)));
            }
        }
}

TEST(a_body_of_0xff_bytes_is_read_within_bounds) {
    for (uint32_t type = 1; type <= PD_RECORD_SCHEDSTAT_DOMAIN; type++)
        for (size_t n = 0; n <= 128; n += 4) {
            _cleanup_(make_done) Make m = {};
            PdStamp stamp = {.event = type < PD_RECORD_USER ? &event : NULL};
            PdRecord r;

            for (size_t k = 0; k < n; k++)
                u8(&m, 0xff);
            r = make_record(&m, type, 0xffff);
            CHECK(is_balanced(described(&r, &stamp, FIELDS_JSON)));
        }
}

TEST(a_header_attr_shows_the_attr_and_its_ids) {
    PdStamp stamp = {.event = NULL};
    _cleanup_(make_done) Make m = {.swap = true};
    PdRecord r;
    const char *s;

    make_header_attr(&m);
    r = make_record(&m, PD_RECORD_HEADER_ATTR, 0);
    s = described(&r, &stamp, FIELDS_TEXT);
    CHECK(strstr(s, " attr {type 1 "));
    CHECK(strstr(s, " ids [301 302]"));
}

TEST(a_header_line_has_offset_and_process_of_a_record) {
    PdStamp stamp = {.event = &event,
                     .id = 5,
                     .time = 1500000000,
                     .pid = 1,
                     .tid = UINT32_MAX,
                     .cpu = 3,
                     .has_id = true,
                     .has_time = true,
                     .has_tid = true,
                     .has_cpu = true};
    _cleanup_(make_done) Make m = {};
    PdRecord r;

    make_comm(&m);
    r = make_record(&m, PD_RECORD_COMM, PD_MISC_USER);
    r.offset = 1000;
    r.file = 3;
    r.decompressed = true;
    CHECK_STREQ(described(&r, &stamp, FIELDS_TEXT),
                "type COMM file 2 offset 1000 decompressed yes size 24 misc 0x2 cpumode user "
                "time 1.500000000 cpu 3 stamp_pid 1 stamp_tid -1 id 5 event cycles "
                "pid 20 tid 21 comm sh");
    r = make_record(&m, PD_RECORD_SWITCH, 0);
    CHECK_STREQ(described(&r, &stamp, FIELDS_JSON),
                "{\"type\":\"SWITCH\",\"offset\":0,\"size\":24,\"misc\":\"0x0\","
                "\"cpumode\":\"unknown\",\"time\":1500000000,\"cpu\":3,\"pid\":1,\"tid\":-1,"
                "\"id\":5,\"event\":\"cycles\",\"switch\":\"in\"}");
}

TEST(an_unparsable_record_is_shown_as_bytes_with_the_reason) {
    PdStamp stamp = {.event = NULL};
    _cleanup_(make_done) Make m = {};
    PdRecord r;

    bytes(&m, "\x01\x02", 2);
    r = make_record(&m, PD_RECORD_LOST, 0);
    CHECK_STREQ(behind_header(described(&r, &stamp, FIELDS_TEXT)),
                "error it does not hold what its type announces bytes 0102");
    r = make_record(&m, PD_RECORD_SAMPLE, 0);
    CHECK_STREQ(behind_header(described(&r, &stamp, FIELDS_TEXT)),
                "error no event has its id, so its fields are not known bytes 0102");
    r = make_record(&m, 5000, 0);
    CHECK_STREQ(described(&r, &stamp, FIELDS_TEXT),
                "type 5000 offset 0 size 10 misc 0x0 bytes 0102");
    r = make_record(&m, PD_RECORD_SIMPLEPERF + 2, 0);
    CHECK_STREQ(described(&r, &stamp, FIELDS_TEXT),
                "type SIMPLEPERF_DSO offset 0 size 10 bytes 0102");
}

TEST_MAIN()
