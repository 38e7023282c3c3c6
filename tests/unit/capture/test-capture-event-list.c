/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture/event/event-list.h"

#include <linux/perf_event.h>

#include "make-event-host.h"
#include "perfdata/event/format.h"
#include "test.h"

static char error[2048];

static int parse(const MadeHost *m, const char *text, EventList **ret) {
    error[0] = '\0';
    return event_list_parse(text, &m->host, ret, error, sizeof(error));
}

/* The only event of a text. */
#define PARSE_ONE(text)                                                                            \
    _cleanup_(made_host_done) MadeHost m = {};                                                     \
    _cleanup_(event_list_freep) EventList *list = NULL;                                            \
    const EventSpec *s;                                                                            \
    CHECK_OK(made_host_init(&m));                                                                  \
    if (parse(&m, text, &list) < 0)                                                                \
        printf("# %s\n", error);                                                                   \
    CHECK(list);                                                                                   \
    CHECK_EQ(list->n, 1);                                                                          \
    s = &list->specs[0]

/* clang-format off */
static const struct { const char *text; uint32_t type; uint64_t config; } names[] = {
    { "cpu-clock",               1, 0       },
    { "task-clock",              1, 1       },
    { "page-faults",             1, 2       },
    { "faults",                  1, 2       },
    { "context-switches",        1, 3       },
    { "cs",                      1, 3       },
    { "cpu-migrations",          1, 4       },
    { "migrations",              1, 4       },
    { "minor-faults",            1, 5       },
    { "major-faults",            1, 6       },
    { "alignment-faults",        1, 7       },
    { "emulation-faults",        1, 8       },
    { "dummy",                   1, 9       },
    { "bpf-output",              1, 10      },
    { "cgroup-switches",         1, 11      },
    { "cycles",                  0, 0       },
    { "cpu-cycles",              0, 0       },
    { "instructions",            0, 1       },
    { "cache-references",        0, 2       },
    { "cache-misses",            0, 3       },
    { "branches",                0, 4       },
    { "branch-instructions",     0, 4       },
    { "branch-misses",           0, 5       },
    { "bus-cycles",              0, 6       },
    { "stalled-cycles-frontend", 0, 7       },
    { "idle-cycles-backend",     0, 8       },
    { "ref-cycles",              0, 9       },
    { "L1-dcache-loads",         3, 0x0     },
    { "L1-dcache-load-misses",   3, 0x10000 },
    { "l1d-miss",                3, 0x10000 },
    { "L1-data-misses-load",     3, 0x10000 },
    { "L1-dcache",               3, 0x0     },
    { "L1-icache-prefetches",    3, 0x201   },
    { "LLC-store-misses",        3, 0x10102 },
    { "L2-write",                3, 0x102   },
    { "dTLB-load-misses",        3, 0x10003 },
    { "Data-TLB-speculative-read", 3, 0x203 },
    { "iTLB-load-misses",        3, 0x10004 },
    { "branch-load-misses",      3, 0x10005 },
    { "node-prefetch-misses",    3, 0x10206 },
    { "r1a8",                    4, 0x1a8   },
    { "r0x1A8",                  4, 0x1a8   },
    { "1:5",                     1, 5       },
    { "4:0x1c2",                 4, 0x1c2   },
};
/* clang-format on */

TEST(names_of_generic_events_have_type_and_config) {
    _cleanup_(made_host_done) MadeHost m = {};

    CHECK_OK(made_host_init(&m));
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        _cleanup_(event_list_freep) EventList *list = NULL;

        if (parse(&m, names[i].text, &list) < 0)
            printf("# %s: %s\n", names[i].text, error);
        CHECK(list);
        CHECK_EQ(list->n, 1);
        CHECK_STREQ(list->specs[0].name, names[i].text);
        CHECK_EQ(list->specs[0].type, names[i].type);
        CHECK_EQ(list->specs[0].config, names[i].config);
    }
}

TEST(a_breakpoint_has_address_length_and_access) {
    PARSE_ONE("mem:0x1000/8:rw:u");

    CHECK_EQ(s->type, PERF_TYPE_BREAKPOINT);
    CHECK_EQ(s->config1, 0x1000);
    CHECK_EQ(s->config2, 8);
    CHECK_EQ(s->bp_type, 3);
    CHECK_EQ(s->default_period, 1);
    CHECK(s->flags & PD_ATTR_EXCLUDE_KERNEL);
    CHECK_STREQ(s->name, "mem:0x1000/8:rw:u");
}

TEST(a_breakpoint_on_code_has_the_length_of_a_word) {
    PARSE_ONE("mem:4096:x");

    CHECK_EQ(s->config1, 4096);
    CHECK_EQ(s->config2, sizeof(long));
    CHECK_EQ(s->bp_type, 4);
}

TEST(terms_of_a_pmu_set_the_bits_of_its_format) {
    PARSE_ONE("cpu/event=0x3cd,umask=0x1,edge,ldlat=30,offcore_rsp=0xffffffffffffffff,snoop=5/pp");

    CHECK_STREQ(s->pmu, "cpu");
    CHECK_EQ(s->type, 4);
    CHECK_EQ(s->config, 0xcd | 3ULL << 32 | 1 << 8 | 1 << 18);
    CHECK_EQ(s->config1, 30);
    CHECK_EQ(s->config2, UINT64_MAX);
    CHECK_EQ(s->config3, 5);
    CHECK_EQ(s->precise, 2);
    CHECK(s->flags & PD_ATTR_EXCLUDE_GUEST);
}

TEST(an_event_of_sysfs_sets_its_terms) {
    PARSE_ONE("cpu/mem-loads,name=loads/P");

    CHECK_EQ(s->config, 0x1cd);
    CHECK_EQ(s->config1, 3);
    CHECK_STREQ(s->name, "loads");
    CHECK(s->precise_is_most);
}

TEST(an_event_of_sysfs_is_found_without_its_pmu) {
    PARSE_ONE("cycles-ct:k");

    CHECK_STREQ(s->pmu, "cpu");
    CHECK_EQ(s->config, 0x3c);
    CHECK(s->flags & PD_ATTR_EXCLUDE_USER);
    CHECK_STREQ(s->name, "cycles-ct:k");
}

TEST(an_open_value_is_set_by_another_term) {
    PARSE_ONE("hv_24x7/PM_X,core=7/");

    CHECK_EQ(s->config, 1 | 7 << 16);
}

TEST(a_raw_config_may_be_among_the_terms) {
    PARSE_ONE("cpu/r1a8,config1=0x7/");

    CHECK_EQ(s->config, 0x1a8);
    CHECK_EQ(s->config1, 7);
}

TEST(a_name_may_be_quoted) {
    PARSE_ONE("cpu-clock/name='a,b=c',period=1000/u");

    CHECK_STREQ(s->name, "a,b=c");
    CHECK_EQ(s->period, 1000);
    CHECK(s->flags & PD_ATTR_EXCLUDE_KERNEL);
}

TEST(terms_that_every_event_has_are_parsed) {
    PARSE_ONE("cycles/freq=50,call-graph=dwarf,stack-size=1001,max-stack=30,no-inherit,time=1/");

    CHECK_EQ(s->frequency_hz, 50);
    CHECK_EQ(s->call_graph, EVENT_CALL_GRAPH_DWARF);
    CHECK_EQ(s->stack_bytes, 1008);
    CHECK_EQ(s->max_stack, 30);
    CHECK(s->no_inherit);
}

TEST(a_prefix_matches_all_pmus_that_begin_with_it) {
    _cleanup_(made_host_done) MadeHost m = {};

    CHECK_OK(made_host_init(&m));
    for (unsigned i = 0; i < 3; i++) {
        static const char *const texts[] = {"uncore_imc/cas/", "imc/event=4/", "uncore_*_?/cas/"};
        _cleanup_(event_list_freep) EventList *list = NULL;

        CHECK_OK(parse(&m, texts[i], &list));
        CHECK_EQ(list->n, 2);
        CHECK_STREQ(list->specs[0].pmu, "uncore_imc_0");
        CHECK_STREQ(list->specs[0].cpus, "0");
        CHECK_STREQ(list->specs[1].pmu, "uncore_imc_1");
        CHECK_STREQ(list->specs[1].cpus, "8");
        CHECK_EQ(list->specs[1].type, 15);
        CHECK_EQ(list->specs[1].config, 4);
        CHECK_STREQ(list->specs[1].name, texts[i]);
    }
}

TEST(a_tracepoint_is_looked_up) {
    PARSE_ONE("sched:sched_switch/call-graph=no/u");

    CHECK_EQ(s->type, PERF_TYPE_TRACEPOINT);
    CHECK_EQ(s->config, 316);
    CHECK_EQ(s->default_period, 1);
    CHECK_STREQ(s->name, "sched:sched_switch");
    CHECK_STREQ(s->system, "sched");
    CHECK_STREQ(s->tracepoint, "sched_switch");
    CHECK_EQ(s->call_graph, EVENT_CALL_GRAPH_NONE);
    CHECK(s->flags & PD_ATTR_EXCLUDE_KERNEL);
}

TEST(globs_of_tracepoints_are_resolved_in_order) {
    _cleanup_(event_list_freep) EventList *list = NULL;
    _cleanup_(made_host_done) MadeHost m = {};

    CHECK_OK(made_host_init(&m));
    CHECK_OK(parse(&m, "sched:*:k,*:*_issue,sched:sched_w[a-c]?eup", &list));
    CHECK_EQ(list->n, 4);
    CHECK_STREQ(list->specs[0].name, "sched:sched_switch");
    CHECK_STREQ(list->specs[1].name, "sched:sched_wakeup");
    CHECK(list->specs[1].flags & PD_ATTR_EXCLUDE_USER);
    CHECK_STREQ(list->specs[2].name, "block:block_rq_issue");
    CHECK_STREQ(list->specs[3].name, "sched:sched_wakeup");
}

TEST(members_of_a_group_have_its_leader) {
    _cleanup_(event_list_freep) EventList *list = NULL;
    _cleanup_(made_host_done) MadeHost m = {};

    CHECK_OK(made_host_init(&m));
    CHECK_OK(parse(&m, "cs,mine{cycles:u,instructions,sched:sched_switch}:SWD,faults", &list));
    CHECK_EQ(list->n, 5);
    CHECK_EQ(list->specs[0].leader, 0);
    CHECK_EQ(list->specs[0].n_members, 1);
    CHECK_EQ(list->specs[1].leader, 1);
    CHECK_EQ(list->specs[1].n_members, 3);
    CHECK_EQ(list->specs[3].leader, 1);
    CHECK(list->specs[1].sample_read && list->specs[3].sample_read && list->specs[1].weak);
    CHECK(list->specs[1].flags & PD_ATTR_PINNED);
    CHECK(!(list->specs[2].flags & PD_ATTR_PINNED));
    CHECK_EQ(list->specs[4].leader, 4);
    CHECK_STREQ(list->specs[1].name, "cycles:u");
    CHECK_STREQ(list->specs[2].name, "instructions");
}

TEST(each_kind_of_cpu_gets_its_own_event) {
    _cleanup_(event_list_freep) EventList *list = NULL;
    _cleanup_(made_host_done) MadeHost m = {};

    CHECK_OK(made_host_init(&m));
    CHECK_OK(made_pmu(&m, "cpu_core/type", "4\n"));
    CHECK_OK(made_pmu(&m, "cpu_core/cpus", "0-7\n"));
    CHECK_OK(made_pmu(&m, "cpu_atom/type", "10\n"));
    CHECK_OK(made_pmu(&m, "cpu_atom/cpus", "8-15\n"));
    CHECK_OK(parse(&m, "cycles:u,{cpu-clock,cycles,instructions}:S,r1a8", &list));
    CHECK_EQ(list->n, 9);
    CHECK_STREQ(list->specs[0].name, "cpu_atom/cycles/u");
    CHECK_STREQ(list->specs[0].cpus, "8-15");
    CHECK_EQ(list->specs[0].type, PERF_TYPE_HARDWARE);
    CHECK_EQ(list->specs[0].config, 10ULL << 32);
    CHECK_STREQ(list->specs[1].name, "cpu_core/cycles/u");
    CHECK_EQ(list->specs[1].config, 4ULL << 32);
    CHECK(list->specs[1].flags & PD_ATTR_EXCLUDE_KERNEL);
    CHECK_STREQ(list->specs[2].name, "cpu-clock");
    CHECK_EQ(list->specs[2].n_members, 1);
    CHECK_STREQ(list->specs[3].name, "cpu_atom/cycles/");
    CHECK_EQ(list->specs[3].n_members, 2);
    CHECK_STREQ(list->specs[4].name, "cpu_atom/instructions/");
    CHECK_EQ(list->specs[4].leader, 3);
    CHECK_EQ(list->specs[6].leader, 5);
    CHECK_EQ(list->specs[7].type, 10);
    CHECK_EQ(list->specs[7].config, 0x1a8);
}

TEST(error_is_one_sentence) {
    /* clang-format off */
    static const struct { const char *text, *sentence; } rows[] = {
        { "cpu-clok",              "Event 'cpu-clok' is not known, did you mean 'cpu-clock'?" },
        { "cs,cylces:u",           "Event 'cylces:u' at offset 3 is not known, did you mean 'cycles'?" },
        { "L1-dcache-laod-misses", "Event 'L1-dcache-laod-misses' is not known, did you mean 'L1-dcache-load-misses', 'L1-icache-load-misses' or 'L1-dcache-store-misses'?" },
        { "sched:sched_swich",     "Event 'sched:sched_swich' is not known, did you mean 'sched_switch'?" },
        { "shed:sched_switch",     "Event 'shed:sched_switch' is not known, did you mean 'sched'?" },
        { "xyzzy",                 "Event 'xyzzy' is not known; perf list shows what this machine has, and rNNN or pmu/config=N/ count by number" },
        { "",                      "Event '' is empty or begins with a character that no event begins with" },
        { "cs,,cs",                "Event '' at offset 3 is empty or begins with a character that no event begins with" },
        { "cs,",                   "Event '' at offset 3 is empty or begins with a character that no event begins with" },
        { "cycles:ux",             "Event 'cycles:ux' has an unknown modifier at offset 8, where u, k, h, G, H, p, P, S, D, I, W or e is expected" },
        { "cycles:uu",             "Event 'cycles:uu' has the modifier 'u' twice" },
        { "cycles:pppp",           "Event 'cycles:pppp' has the modifier 'p' more than three times" },
        { "cycles:b",              "Event 'cycles:b' has the modifier 'b', but counting by BPF takes no samples" },
        { "cpu/evnt=1/",           "Event 'cpu/evnt=1/' has the term 'evnt', which the PMU cpu does not have, did you mean 'event'?" },
        { "cpu/event=0x1000/",     "Event 'cpu/event=0x1000/' has a value of 'event' that is too big, the most is 4095" },
        { "cpu/event=many/",       "Event 'cpu/event=many/' has 'event=many', where a number is expected" },
        { "cpu/event=1",           "Event 'cpu/event=1' has terms that no '/' ends" },
        { "cycles/period=0/",      "Event 'cycles/period=0/' has the term 'period' with a bad value, it takes a number of events" },
        { "cycles/time=0/",        "Event 'cycles/time=0/' has the term 'time' with a bad value, it takes 1, since samples are put in order by it" },
        { "cycles/overwrite/",     "Event 'cycles/overwrite/' has the term 'overwrite', which has no meaning in a recording that never ends" },
        { "cycles/perod=1/",       "Event 'cycles/perod=1/' has the term 'perod', which it does not have, did you mean 'period'?" },
        { "bits/bad=1/",           "Event 'bits/bad=1/' has the term 'bad', which the PMU bits does not have" },
        { "{cycles,cs",            "Event 'cs' at offset 8 is in a group that is not closed by '}'" },
        { "{cycles,{cs}}",         "Event '{cs' at offset 8 is empty or begins with a character that no event begins with" },
        { "{cycles}x",             "Event 'x' at offset 8 stands where ',' or the end is expected" },
        { "mem:x",                 "Event 'mem:x' needs a number behind 'mem:', as in 'mem:0x1000/8:rw'" },
        { "mem:0x10:rr",           "Event 'mem:0x10:rr' has 'r' twice" },
        { "1:x",                   "Event '1:x' needs two numbers, a type and a config, as in '1:0'" },
        { "duration_time",         "Event 'duration_time' is counted by perf stat itself and cannot be sampled" },
        { "cycles/",               "Event 'cycles/' has terms that no '/' ends" },
        { "cs cs",                 "Event 'cs cs' has unexpected text at offset 2, where ':', ',' or the end is expected" },
        { "\x1b[2J",               "Event '\\x1b[2J' is empty or begins with a character that no event begins with" },
        { "../cpu/x/",             "Event '../cpu/x/' names the PMU '..', which this machine does not have" },
        { "broken/config=1/",      "Event 'broken/config=1/' names the PMU 'broken', which this machine does not have" },
        { "cpus/config=1/",        "Event 'cpus/config=1/' names the PMU 'cpus', which this machine does not have, did you mean 'cpu'?" },
        { "cylces/period=1/",      "Event 'cylces/period=1/' names the PMU 'cylces', which this machine does not have, did you mean 'cycles'?" },
    };
    /* clang-format on */
    _cleanup_(made_host_done) MadeHost m = {};

    CHECK_OK(made_host_init(&m));
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        _cleanup_(event_list_freep) EventList *list = NULL;

        CHECK_EQ(parse(&m, rows[i].text, &list), -EINVAL);
        CHECK(!list);
        CHECK_STREQ(error, rows[i].sentence);
    }
}

TEST(names_from_vendor_manuals_are_looked_up) {
    _cleanup_(made_host_done) MadeHost m = {};
    _cleanup_(event_list_freep) EventList *list = NULL;

    /* The PMUs of CPUs that are not here, too. */
    CHECK_OK(setenv("LIBPFM_ENCODE_INACTIVE", "1", true));
    CHECK_OK(made_host_init(&m));
    if (parse(&m, "hsw::L2_RQSTS.MISS", &list) < 0)
        TEST_SKIP("libpfm4 is not built in or not installed");
    list = event_list_free(list);
    CHECK_OK(parse(&m, "cs,amd64_fam17h_zen1::RETIRED_UOPS,{skl::INST_RETIRED.ANY_P:c=1:u,cs}:S",
                   &list));
    CHECK_EQ(list->n, 4);
    CHECK_EQ(list->specs[1].type, PERF_TYPE_RAW);
    CHECK_EQ(list->specs[1].config, 0xc1);
    CHECK_EQ(list->specs[1].flags, PD_ATTR_EXCLUDE_GUEST);
    CHECK_STREQ(list->specs[1].name, "amd64_fam17h_zen1::RETIRED_UOPS");
    CHECK_EQ(list->specs[2].config, 0x10000c0);
    CHECK(list->specs[2].flags & PD_ATTR_EXCLUDE_KERNEL);
    CHECK_EQ(list->specs[2].n_members, 2);
    list = event_list_free(list);
    CHECK_OK(parse(&m, "hsw::L2_RQSTS.MISS:pp", &list));
    CHECK_EQ(list->specs[0].precise, 2);
    CHECK_EQ(parse(&m, "hsw::L2_RQSTS.MISSES", &list), -EINVAL);
}

TEST(a_text_that_is_too_long_is_refused) {
    _cleanup_(event_list_freep) EventList *list = NULL;
    _cleanup_(made_host_done) MadeHost m = {};
    char text[EVENT_TEXT_MAX + 2];

    CHECK_OK(made_host_init(&m));
    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = i % 3 < 2 ? "cs"[i % 3] : ',';
    text[EVENT_TEXT_MAX] = '\0';
    CHECK_EQ(parse(&m, text, &list), -EINVAL);
    CHECK(strstr(error, "more than 1023 letters"));
    text[EVENT_TEXT_MAX - 2] = '\0';
    CHECK_OK(parse(&m, text, &list));
    CHECK_EQ(list->n, 341);
}

TEST(more_events_than_the_limit_are_refused) {
    _cleanup_(event_list_freep) EventList *list = NULL;
    _cleanup_(made_host_done) MadeHost m = {};

    CHECK_OK(made_host_init(&m));
    for (unsigned i = 0; i < EVENT_LIST_MAX; i++) {
        char name[32];

        snprintf(name, sizeof(name), "e%u", i);
        CHECK_OK(made_tracepoint(&m, "many", name, 1000 + i));
    }
    CHECK_OK(parse(&m, "many:*", &list));
    CHECK_EQ(list->n, EVENT_LIST_MAX);
    list = event_list_free(list);
    CHECK_EQ(parse(&m, "many:*,cs", &list), -EINVAL);
    CHECK_STREQ(error, "Event 'cs' at offset 7 makes it more than 1024 events, which is the limit");
}

static int refuse(void *userdata _unused_, const char *path _unused_, int *ret_fd _unused_) {
    return -EACCES;
}

TEST(unreadable_tracefs_is_reported) {
    _cleanup_(event_list_freep) EventList *list = NULL;
    EventHost host = {.sysfs = "/nowhere", .open_tracefs = refuse};

    CHECK_EQ(event_list_parse("sched:sched_switch", &host, &list, error, sizeof(error)), -EACCES);
    CHECK(strstr(error, "tracefs cannot be read without"));
    host.open_tracefs = NULL;
    CHECK_EQ(event_list_parse("sched:sched_switch", &host, &list, error, sizeof(error)), -EINVAL);
    CHECK(strstr(error, "is not known"));
}

typedef struct Bad {
    unsigned n;
    int errors[8];
    char sentences[8][512];
} Bad;

static int hear_bad(void *userdata, int r, const char *sentence) {
    Bad *bad = userdata;

    bad->errors[bad->n] = r;
    snprintf(bad->sentences[bad->n++], sizeof(bad->sentences[0]), "%s", sentence);
    return 0;
}

TEST(a_bad_event_is_skipped_and_the_others_are_parsed) {
    /* clang-format off */
    static const struct { const char *text, *wanted, *bad; } rows[] = {
        { "cs,cycels,faults",                         "cs faults ",       "cycels "           },
        { "cycels",                                   "",                 "cycels "           },
        { "cycels,cs",                                "cs ",              "cycels "           },
        { "cs,cycels",                                "cs ",              "cycels "           },
        { "cycels,nosuch:thing,cs,faults:q",          "cs ",              "cycels nosuch:thing faults:q " },
        { "{cs,cycels}:S,faults",                     "faults ",          "cycels "           },
        { "{cs,faults},{cycels,cs},{cpu-clock,task-clock}", "cs faults cpu-clock task-clock ", "cycels " },
        { "nosuch/event=1,umask=2/,cs",               "cs ",              "nosuch/event=1,umask=2/ " },
        { "cs/perod=1,name=a/,faults",                "faults ",          "cs/perod=1,name=a/ " },
        { "mem:0x10/3:q,cs",                         "cs ",              "mem:0x10/3:q " },
        { "{cs}x,faults",                             "faults ",          "x "                },
        { "sched:*,sched:nosuch,cs",                  "sched:sched_switch sched:sched_wakeup cs ", "sched:nosuch " },
    };
    /* clang-format on */
    _cleanup_(made_host_done) MadeHost m = {};

    CHECK_OK(made_host_init(&m));
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        _cleanup_(event_list_freep) EventList *list = NULL;
        char left[512] = "", texts[512] = "", text[256];
        Bad bad = {};

        CHECK_OK(event_list_parse_each(rows[i].text, &m.host, hear_bad, &bad, &list));
        for (size_t k = 0; k < list->n; k++)
            snprintf(left + strlen(left), sizeof(left) - strlen(left), "%s ", list->specs[k].name);
        for (unsigned k = 0; k < bad.n; k++) {
            CHECK_EQ(sscanf(bad.sentences[k], "Event '%255[^']", text), 1);
            snprintf(texts + strlen(texts), sizeof(texts) - strlen(texts), "%s ", text);
        }
        CHECK_STREQ(left, rows[i].wanted);
        CHECK_STREQ(texts, rows[i].bad);
        for (size_t k = 0; k < list->n; k++)
            CHECK(list->specs[k].leader <= k && list->specs[list->specs[k].leader].n_members >= 1);
    }
}

TEST(a_group_is_removed_as_a_whole) {
    _cleanup_(made_host_done) MadeHost m = {};
    _cleanup_(event_list_freep) EventList *list = NULL;

    CHECK_OK(made_host_init(&m));
    CHECK_OK(parse(&m, "cs,{faults,cpu-clock},{task-clock,migrations},cs", &list));
    event_list_remove(list, 2);
    CHECK_EQ(list->n, 4);
    CHECK_STREQ(list->specs[1].name, "task-clock");
    CHECK_EQ(list->specs[1].leader, 1);
    CHECK_EQ(list->specs[2].leader, 1);
    CHECK_EQ(list->specs[3].leader, 3);
    event_list_remove(list, 3);
    event_list_remove(list, 0);
    CHECK_EQ(list->n, 2);
    CHECK_EQ(list->specs[1].leader, 0);
}

TEST(an_event_of_an_unloaded_module_is_not_called_wrong) {
    _cleanup_(made_host_done) MadeHost m = {};
    _cleanup_(event_list_freep) EventList *list = NULL;
    char modules[128];

    CHECK_OK(made_host_init(&m));
    CHECK_EQ(parse(&m, "kvm:kvm_exit", &list), -EINVAL);
    CHECK_OK(
        made_file(&m, "modules.dep",
                  "kernel/arch/x86/kvm/kvm.ko.xz:\nkernel/drivers/my-pmu.ko: kernel/a/kvmx.ko\n"));
    snprintf(modules, sizeof(modules), "%s/modules.dep", m.root);
    m.host.modules = modules;
    CHECK_EQ(parse(&m, "kvm:kvm_exit", &list), -ENOPKG);
    CHECK_STREQ(error, "Event 'kvm:kvm_exit' may be of the kernel module 'kvm', which is "
                       "not loaded");
    CHECK_EQ(parse(&m, "my_pmu/event=1/", &list), -ENOPKG);
    CHECK_EQ(parse(&m, "kvmx:a", &list), -EINVAL);
    CHECK_EQ(parse(&m, "kv:a", &list), -EINVAL);
    CHECK_EQ(parse(&m, "nosuch:thing", &list), -EINVAL);
    CHECK_EQ(parse(&m, "kvm", &list), -EINVAL);
    /* A module that is loaded has no such event. */
    CHECK_OK(made_file(&m, "sys/module/kvm/refcnt", "0\n"));
    CHECK_EQ(parse(&m, "kvm:kvm_exit", &list), -EINVAL);
}

static int no_tracefs(void *userdata _unused_, const char *path _unused_, int *ret_fd _unused_) {
    return -ENOENT;
}

TEST(without_tracefs_an_unknown_name_may_be_a_tracepoint) {
    _cleanup_(event_list_freep) EventList *list = NULL;
    EventHost host = {.sysfs = "/nowhere", .open_tracefs = no_tracefs};

    CHECK_EQ(event_list_parse("sched:sched_switch", &host, &list, error, sizeof(error)), -ENOPKG);
    CHECK(strstr(error, "tracefs is not mounted"));
    CHECK_EQ(event_list_parse("cpu-clok:u", &host, &list, error, sizeof(error)), -EINVAL);
    CHECK(strstr(error, "did you mean 'cpu-clock'"));
}

TEST(auto_is_cycles_unless_the_machine_has_no_counter) {
    static const char *const rows[][2] = {{"auto", "cycles"},
                                          {"auto:u", "cycles:u"},
                                          {"auto:ppu", "cycles:ppu"},
                                          {"auto/period=7/k", "cycles/period=7/k"}};

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        PARSE_ONE(rows[i][0]);
        CHECK(s->is_auto);
        CHECK_EQ(s->type, 0);
        CHECK_EQ(s->config, 0);
        CHECK_STREQ(s->name, rows[i][1]);
    }
    PARSE_ONE("cycles");
    CHECK(!s->is_auto);
}

TEST_MAIN()
