/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "config/config.h"
#include "test.h"

/*
 * Every key by itself: what it takes, what becomes of that, and what it refuses. A key without
 * rows here fails the walk over the table.
 */

typedef struct Value {
    const char *key; /* with the section's first letter: "P.MaxUse" */
    const char *value;
    int expect;       /* of the parser */
    uint64_t becomes; /* the number at its place; texts are compared by their own tests */
} Value;

#define MS        1000000ULL
#define SEC       1000000000ULL
#define BAD       (-EINVAL)
#define FAR       (-ERANGE)
#define TEXT      UINT64_MAX /* not a number */
#define UNLIMITED CONFIG_NO_LIMIT

/* clang-format off */
static const Value values[] = {
    { "P.FlushIntervalSec",  "500ms",       0,   500 * MS            },
    { "P.FlushIntervalSec",  "10ms",        0,   10 * MS             },
    { "P.FlushIntervalSec",  "9ms",         FAR, 0                   },
    { "P.FlushIntervalSec",  "1h",          0,   3600 * SEC          },
    { "P.FlushIntervalSec",  "61min",       FAR, 0                   },
    { "P.FlushIntervalSec",  "infinity",    BAD, 0                   },
    { "P.FlushIntervalSec",  "0",           FAR, 0                   },
    { "P.FlushIntervalSec",  "5 bananas",   BAD, 0                   },
    { "P.SyncIntervalSec",   "1s",          0,   SEC                 },
    { "P.SyncIntervalSec",   "0",           0,   0                   },
    { "P.SyncIntervalSec",   "Infinity",    0,   0                   },
    { "P.SyncIntervalSec",   "999ms",       FAR, 0                   },
    { "P.SyncIntervalSec",   "101q",        BAD, 0                   },
    { "P.SyncIntervalSec",   "5300w",       FAR, 0                   },
    { "P.Storage",           "volatile",    0,   TEXT                },
    { "P.Storage",           "persistent",  0,   TEXT                },
    { "P.Storage",           "Volatile",    BAD, 0                   },
    { "P.Storage",           "auto",        BAD, 0                   },
    { "P.MaxUse",            "2G",          0,   2ULL << 30          },
    { "P.MaxUse",            "10%",         0,   CONFIG_PERCENT | 10 },
    { "P.MaxUse",            "100%",        0,   CONFIG_PERCENT | 100 },
    { "P.MaxUse",            "101%",        FAR, 0                   },
    { "P.MaxUse",            "0%",          FAR, 0                   },
    { "P.MaxUse",            "%",           BAD, 0                   },
    { "P.MaxUse",            "5%%",         BAD, 0                   },
    { "P.MaxUse",            "1000%",       BAD, 0                   },
    { "P.MaxUse",            "-5%",         BAD, 0                   },
    { "P.MaxUse",            "infinity",    0,   UNLIMITED           },
    { "P.MaxUse",            "0",           FAR, 0                   },
    { "P.MaxUse",            "1023K",       FAR, 0                   },
    { "P.MaxUse",            "9999999T",    FAR, 0                   },
    { "P.MaxUse",            "99999999999999999999", FAR, 0          },
    { "P.KeepFree",          "0",           0,   0                   },
    { "P.KeepFree",          "0%",          0,   CONFIG_PERCENT      },
    { "P.KeepFree",          "15%",         0,   CONFIG_PERCENT | 15 },
    { "P.KeepFree",          "1G",          0,   1ULL << 30          },
    { "P.KeepFree",          "infinity",    BAD, 0                   },
    { "P.MinUse",            "0",           0,   0                   },
    { "P.MinUse",            "1G",          0,   1ULL << 30          },
    { "P.MinUse",            "many",        BAD, 0                   },
    { "P.RuntimeMaxUse",     "1M",          0,   1ULL << 20          },
    { "P.RuntimeMaxUse",     "1000K",       FAR, 0                   },
    { "P.MaxRetentionSec",   "30d",         0,   30 * 86400 * SEC    },
    { "P.MaxRetentionSec",   "0",           0,   0                   },
    { "P.MaxRetentionSec",   "infinity",    0,   0                   },
    { "P.MaxRetentionSec",   "1ms",         FAR, 0                   },
    { "P.SnapshotMaxUse",    "3G",          0,   3 * 1024 * 1024 * 1024ULL },
    { "P.SnapshotMaxUse",    "1K",          FAR, 0                   },
    { "P.SnapshotMaxRetentionSec", "1h",    0,   3600 * SEC          },
    { "P.SnapshotMaxRetentionSec", "1ms",   FAR, 0                   },
    { "P.BinariesMaxUse",    "512M",        0,   512ULL << 20        },
    { "P.BinariesMaxUse",    "0",           0,   0                   },
    { "P.BinariesMaxUse",    "infinity",    BAD, 0                   },
    { "P.MaxBufferTotal",    "64K",         0,   64 << 10            },
    { "P.MaxBufferTotal",    "63K",         FAR, 0                   },
    { "P.MaxBufferTotal",    "2%",          0,   CONFIG_PERCENT | 2  },
    { "P.MaxBufferTotal",    "0%",          FAR, 0                   },
    { "P.MaxBufferTotal",    "infinity",    BAD, 0                   },
    { "P.MaxBufferTotal",    "65G",         FAR, 0                   },
    { "P.MaxFrequency",      "1000",        0,   1000                },
    { "P.MaxFrequency",      "0",           0,   0                   },
    { "P.MaxFrequency",      "infinity",    0,   0                   },
    { "P.MaxFrequency",      "100001",      FAR, 0                   },
    { "P.MaxFrequency",      "-1",          BAD, 0                   },
    { "P.MaxSessions",       "64",          0,   64                  },
    { "P.MaxSessions",       "65",          FAR, 0                   },
    { "P.MaxSessions",       "0",           FAR, 0                   },
    { "P.MaxSessions",       "infinity",    BAD, 0                   },
    { "P.MaxBytesPerSec",    "1M",          0,   1ULL << 20          },
    { "P.MaxBytesPerSec",    "0",           0,   0                   },
    { "P.MaxBytesPerSec",    "1023",        FAR, 0                   },
    { "S.Enabled",           "no",          0,   0                   },
    { "S.Enabled",           "on",          0,   1                   },
    { "S.Enabled",           "2",           BAD, 0                   },
    { "S.Event",             "cycles:u",    0,   TEXT                },
    { "S.Event",             "{cycles,instructions}:S,sched:sched_switch,r1a8", 0, TEXT },
    { "S.Event",             "cpu/event=0x3c,umask=0,name=busy/ukp", 0, TEXT },
    { "S.Event",             "cycles,,faults", BAD, 0                },
    { "S.Event",             ",cycles",     BAD, 0                   },
    { "S.Event",             "cycles,",     BAD, 0                   },
    { "S.Event",             "cycles faults", BAD, 0                 },
    { "S.Event",             "{cycles",     BAD, 0                   },
    { "S.Event",             "}cycles{",    BAD, 0                   },
    { "S.Event",             "{a,{b,c}}",   BAD, 0                   },
    { "S.Event",             "cy\xc3\xa9",  BAD, 0                   },
    { "S.Event",             "a\x1b[2J",    BAD, 0                   },
    { "S.Frequency",         "1",           0,   1                   },
    { "S.Frequency",         "100000",      0,   100000              },
    { "S.Frequency",         "100001",      FAR, 0                   },
    { "S.Frequency",         "0",           FAR, 0                   },
    { "S.Frequency",         "99Hz",        BAD, 0                   },
    { "S.Frequency",         "max",         0,   TEXT                },
    { "S.Frequency",         "maximum",     BAD, 0                   },
    { "S.Period",            "1000003",     0,   1000003             },
    { "S.Period",            "0",           0,   0                   },
    { "S.Period",            "9223372036854775808", FAR, 0           },
    { "S.Period",            "1M",          BAD, 0                   },
    { "S.CallGraph",         "none",        0,   TEXT                },
    { "S.CallGraph",         "lbr",         0,   TEXT                },
    { "S.CallGraph",         "dwarf",       0,   TEXT                },
    { "S.CallGraph",         "dwarf:65528", 0,   TEXT                },
    { "S.CallGraph",         "dwarf:64K",   FAR, 0                   },
    { "S.CallGraph",         "dwarf:0",     FAR, 0                   },
    { "S.CallGraph",         "dwarf:",      BAD, 0                   },
    { "S.CallGraph",         "dwarf,8192",  BAD, 0                   },
    { "S.CallGraph",         "auto",        0,   TEXT                },
    { "S.CallGraph",         "auto:8K",     BAD, 0                   },
    { "S.CallGraph",         "unwind",      0,   TEXT                },
    { "S.CallGraph",         "unwind:8K",   0,   TEXT                },
    { "S.CallGraph",         "unwind:64K",  FAR, 0                   },
    { "S.CallGraph",         "unwind:",     BAD, 0                   },
    { "S.CallGraph",         "unwinding",   BAD, 0                   },
    { "S.CallGraph",         "yes",         BAD, 0                   },
    { "S.ExcludeIdle",       "false",       0,   0                   },
    { "S.ExcludeIdle",       "maybe",       BAD, 0                   },
    { "S.UserSamples",       "off",         0,   0                   },
    { "S.UserSamples",       "n",           BAD, 0                   },
    { "S.KernelSamples",     "0",           0,   0                   },
    { "S.KernelSamples",     "10",          BAD, 0                   },
    { "S.Namespaces",        "TRUE",        0,   1                   },
    { "S.Namespaces",        "all",         BAD, 0                   },
    { "S.CPUs",              "0-3,8",       0,   TEXT                },
    { "S.CPUs",              "8191",        0,   TEXT                },
    { "S.CPUs",              "8192",        FAR, 0                   },
    { "S.CPUs",              "3-0",         BAD, 0                   },
    { "S.CPUs",              "0-",          BAD, 0                   },
    { "S.CPUs",              "0x1",         BAD, 0                   },
    { "S.CPUs",              "-1",          BAD, 0                   },
    { "S.CPUs",              "all",         BAD, 0                   },
    { "S.CPUs",              "99999999999999999999", FAR, 0          },
    { "S.Cgroup",            "system.slice", 0,  TEXT                },
    { "S.Cgroup",            "/a b/c/",     0,   TEXT                },
    { "S.Cgroup",            "/",           BAD, 0                   },
    { "S.Cgroup",            "a//b",        BAD, 0                   },
    { "S.Cgroup",            "a/../b",      BAD, 0                   },
    { "S.Cgroup",            "..",          BAD, 0                   },
    { "S.Cgroup",            "./a",         BAD, 0                   },
    { "S.Cgroup",            "//a",         BAD, 0                   },
    { "S.Cgroup",            "a\nb",        BAD, 0                   },
    { "S.Pid",               "1",           0,   1                   },
    { "S.Pid",               "1, 2 3",      0,   TEXT                },
    { "S.Pid",               "0",           BAD, 0                   },
    { "S.Pid",               "4194305",     FAR, 0                   },
    { "S.Pid",               "1;2",         BAD, 0                   },
    { "S.Pid",               "self",        BAD, 0                   },
    { "S.Tid",               "1",           0,   1                   },
    { "S.Tid",               "7,8",         0,   TEXT                },
    { "S.Tid",               "0",           BAD, 0                   },
    { "S.Tid",               "4194305",     FAR, 0                   },
    { "S.BufferSize",        "8K",          0,   8 << 10             },
    { "S.BufferSize",        "64M",         0,   64 << 20            },
    { "S.BufferSize",        "4K",          FAR, 0                   },
    { "S.BufferSize",        "128M",        FAR, 0                   },
    { "S.BufferSize",        "100K",        BAD, 0                   },
    { "S.RotateIntervalSec", "1s",          0,   SEC                 },
    { "S.RotateIntervalSec", "0",           0,   0                   },
    { "S.RotateIntervalSec", "infinity",    0,   0                   },
    { "S.RotateIntervalSec", "0.5s",        FAR, 0                   },
    { "S.MaxSegmentSize",    "64K",         0,   64 << 10            },
    { "S.MaxSegmentSize",    "0",           0,   0                   },
    { "S.MaxSegmentSize",    "4K",          FAR, 0                   },
    { "S.MaxSegmentRaw",     "infinity",    0,   0                   },
    { "S.MaxSegmentRaw",     "2T",          FAR, 0                   },
    { "S.Compress",          "none",        0,   0                   },
    { "S.Compress",          "zstd",        0,   3                   },
    { "S.Compress",          "zstd:22",     0,   22                  },
    { "S.Compress",          "zstd:0",      FAR, 0                   },
    { "S.Compress",          "zstd:23",     FAR, 0                   },
    { "S.Compress",          "zstd:",       BAD, 0                   },
    { "S.Compress",          "zstd3",       BAD, 0                   },
    { "S.Compress",          "gzip",        BAD, 0                   },
    { "S.Layout",            "directory",   0,   TEXT                },
    { "S.Layout",            "folder",      BAD, 0                   },
    { "S.MaxUse",            "1M",          0,   1 << 20             },
    { "S.MaxUse",            "0",           0,   0                   },
    { "S.MaxUse",            "10%",         BAD, 0                   },
    { "S.MaxRetentionSec",   "1d",          0,   86400 * SEC         },
    { "S.MaxRetentionSec",   "1us",         FAR, 0                   },
    { "S.MaxSegments",       "10",          0,   10                  },
    { "S.MaxSegments",       "infinity",    0,   0                   },
    { "S.MaxSegments",       "1000001",     FAR, 0                   },
    { "S.MaxSegments",       "4294967296",  FAR, 0                   },
};
/* clang-format on */

static const char *section_of(const Value *v) {
    return v->key[0] == 'P' ? "Profd" : "Session";
}

static uint64_t number_at(const ConfigKey *key, const void *base) {
    const char *at = (const char *)base + key->offset;
    uint64_t wide;
    uint32_t narrow;

    if (key->size == sizeof(bool))
        return *(const bool *)at;
    memcpy(&wide, at, sizeof(wide));
    memcpy(&narrow, at, sizeof(narrow));
    return key->size >= sizeof(wide) && key->size < 2 * sizeof(wide) ? wide : narrow;
}

TEST(each_key_accepts_right_values_and_refuses_others) {
    for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
        const Value *v = &values[i];
        const ConfigKey *key = config_key(section_of(v), v->key + 2);
        SessionConfig session;
        int r;

        CHECK(key);
        config_session_defaults(&session, "s");
        if (v->key[0] == 'P') {
            _cleanup_(config_freep) Config *config = NULL;

            CHECK_OK(config_new(&config));
            r = key->parse(key, v->value, config);
            CHECK(r != 0 || v->becomes == TEXT || number_at(key, config) == v->becomes);
        } else {
            r = key->parse(key, v->value, &session);
            CHECK(r != 0 || v->becomes == TEXT || number_at(key, &session) == v->becomes);
        }
        if (r != v->expect)
            fprintf(stderr, "%s=%s is %d\n", v->key, v->value, r);
        CHECK_EQ(r, v->expect);
    }
}

TEST(a_refused_value_changes_nothing) {
    for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
        const Value *v = &values[i];
        const ConfigKey *key = config_key(section_of(v), v->key + 2);
        SessionConfig before, after;
        Config whole = {}, same = {};

        if (v->expect == 0)
            continue;
        memset(&before, 0xa5, sizeof(before));
        memset(&after, 0xa5, sizeof(after));
        (void)key->parse(key, v->value, v->key[0] == 'P' ? (void *)&whole : &after);
        CHECK(memcmp(&before, &after, sizeof(before)) == 0);
        CHECK(memcmp(&whole, &same, sizeof(whole)) == 0);
    }
}

TEST(a_printed_value_parses_to_the_same_value) {
    for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
        const Value *v = &values[i];
        const ConfigKey *key = config_key(section_of(v), v->key + 2);
        _cleanup_(config_freep) Config *whole = NULL, *again = NULL;
        _cleanup_(buffer_done) Buffer text = {};
        SessionConfig session, same;
        bool is_whole = v->key[0] == 'P';

        if (v->expect != 0)
            continue;
        CHECK_OK(config_new(&whole));
        CHECK_OK(config_new(&again));
        config_session_defaults(&session, "s");
        config_session_defaults(&same, "s");
        CHECK_OK(key->parse(key, v->value, is_whole ? (void *)whole : &session));
        config_print(key, is_whole ? (void *)whole : &session, &text);
        buffer_append(&text, "", 1);
        CHECK_OK(buffer_error(&text));
        CHECK_OK(key->parse(key, (const char *)text.data, is_whole ? (void *)again : &same));
        CHECK(memcmp((char *)(is_whole ? (void *)whole : &session) + key->offset,
                     (char *)(is_whole ? (void *)again : &same) + key->offset, key->size) == 0);
    }
}

TEST(defaults_are_printed_as_the_table_has_them) {
    _cleanup_(config_freep) Config *config = NULL;
    ConfigTable table = config_table();

    CHECK_OK(config_new(&config));
    for (size_t i = 0; i < table.n; i++) {
        _cleanup_(buffer_done) Buffer text = {};

        config_print(
            &table.keys[i],
            strcmp(table.keys[i].section, "Profd") == 0 ? (void *)config : config->sessions, &text);
        buffer_append(&text, "", 1);
        CHECK_STREQ((const char *)text.data, table.keys[i].fallback);
    }
}

static int make(const Config *config, const char *key, const char *value, SessionConfig *ret,
                ConfigFault *ret_fault) {
    const ConfigSetting settings[] = {{"Event", "cpu-clock"}, {key, value}};

    return config_make_session(config, "web", settings, key ? 2 : 1, ret, ret_fault);
}

TEST(a_session_started_by_hand_has_the_words_and_limits_of_a_configured_one) {
    _cleanup_(config_freep) Config *config = NULL;
    ConfigFault fault = {};
    SessionConfig session;

    CHECK_OK(config_new(&config));
    config->max_frequency_hz = 500;
    CHECK_OK(make(config, NULL, NULL, &session, &fault));
    CHECK_STREQ(session.name, "web");
    CHECK_STREQ(session.events, "cpu-clock");
    CHECK(session.runtime && session.enabled);
    CHECK_OK(make(config, "Frequency", "500", &session, &fault));
    CHECK_EQ(session.frequency_hz, (uint64_t)500);
    CHECK_EQ(make(config, "Frequency", "501", &session, &fault), -EINVAL);
    CHECK(fault.setting == 1 && strstr(fault.expected, "500"));
    CHECK_EQ(make(config, "Frequency", "often", &session, &fault), -EINVAL);
    CHECK_STREQ(fault.expected, config_key("Session", "Frequency")->expected);
    CHECK_EQ(make(config, "MaxSessions", "3", &session, &fault), -EINVAL);
    CHECK_EQ(make(config, "", "", &session, &fault), -EINVAL);
    CHECK_EQ(fault.setting, 1U);
    /* Nothing of it becomes a part of the configuration. */
    CHECK_EQ(config->n_sessions, 1U);
    CHECK_STREQ(config->sessions[0].name, "default");
}

TEST(the_test_has_a_good_and_a_bad_value_for_every_key) {
    ConfigTable table = config_table();

    for (size_t i = 0; i < table.n; i++) {
        unsigned good = 0, bad = 0;

        for (size_t k = 0; k < ARRAY_SIZE(values); k++) {
            if (strcmp(values[k].key + 2, table.keys[i].name) != 0 ||
                values[k].key[0] != table.keys[i].section[0])
                continue;
            good += values[k].expect == 0;
            bad += values[k].expect != 0;
        }
        if (good == 0 || bad == 0)
            fprintf(stderr, "%s= of %s has %u good and %u bad ones\n", table.keys[i].name,
                    table.keys[i].section, good, bad);
        CHECK(good > 0 && bad > 0);
    }
}

TEST(every_row_of_the_table_is_complete) {
    ConfigTable table = config_table();

    for (size_t i = 0; i < table.n; i++) {
        CHECK(table.keys[i].expected[0] && table.keys[i].size > 0 && table.keys[i].touches != 0);
        CHECK(table.keys[i].min <= table.keys[i].max);
        CHECK(config_key(table.keys[i].section, table.keys[i].name) == &table.keys[i]);
    }
}

TEST(lists_are_normalised) {
    SessionConfig a, b;
    const ConfigKey *cpus = config_key("Session", "CPUs"),
                    *cgroup = config_key("Session", "Cgroup");

    config_session_defaults(&a, "s");
    config_session_defaults(&b, "s");
    CHECK_OK(cpus->parse(cpus, "0-3, 5,8 ", &a));
    CHECK_STREQ(a.cpus, "0-3,5,8");
    CHECK_OK(cpus->parse(cpus, "0-3 5 8", &b));
    CHECK_OK(cgroup->parse(cgroup, "/system.slice/x.service/", &a));
    CHECK_STREQ(a.cgroup, "system.slice/x.service");
    CHECK_OK(cgroup->parse(cgroup, "longer/than/what/comes/then/by/far", &b));
    CHECK_OK(cgroup->parse(cgroup, "system.slice/x.service", &b));
    CHECK(memcmp(&a, &b, sizeof(a)) == 0);
}

TEST(lists_have_limits) {
    SessionConfig session;
    const ConfigKey *key = config_key("Session", "Pid");
    char text[4096] = "";

    config_session_defaults(&session, "s");
    for (unsigned i = 0; i < CONFIG_PIDS_MAX; i++)
        strcat(text, "7 ");
    CHECK_OK(key->parse(key, text, &session));
    CHECK_EQ(session.n_pids, (uint32_t)CONFIG_PIDS_MAX);
    strcat(text, "7");
    CHECK_EQ(key->parse(key, text, &session), -ERANGE);
    key = config_key("Session", "CPUs");
    CHECK_OK(key->parse(key, "1", &session));
    memset(text, '1', sizeof(text) - 1);
    for (size_t i = 1; i < sizeof(text); i += 2)
        text[i] = ',';
    text[sizeof(text) - 1] = '\0';
    CHECK_EQ(key->parse(key, text, &session), -ERANGE);
    text[CONFIG_CPUS_MAX - 1] = '\0';
    CHECK_OK(key->parse(key, text, &session));
    key = config_key("Session", "Cgroup");
    memset(text, 'g', sizeof(text));
    for (size_t i = 200; i < sizeof(text); i += 201)
        text[i] = '/';
    text[CONFIG_PATH_MAX] = '\0';
    CHECK_EQ(key->parse(key, text, &session), -ERANGE);
    text[CONFIG_PATH_MAX - 1] = '\0';
    CHECK_OK(key->parse(key, text, &session));
    text[200] = text[401] = 'g';
    CHECK_EQ(key->parse(key, text, &session), -EINVAL);
    key = config_key("Session", "Event");
    CHECK_OK(key->parse(key, text, &session));
    text[CONFIG_EVENTS_MAX - 1] = 'g';
    text[CONFIG_EVENTS_MAX] = '\0';
    CHECK_EQ(key->parse(key, text, &session), -ERANGE);
}

TEST(the_size_of_a_stack_is_a_multiple_of_8) {
    SessionConfig session;
    const ConfigKey *key = config_key("Session", "CallGraph");

    config_session_defaults(&session, "s");
    CHECK_OK(key->parse(key, "dwarf:4001", &session));
    CHECK_EQ(session.call_graph, CALL_GRAPH_DWARF);
    CHECK_EQ(session.stack_bytes, 4008U);
    CHECK_OK(key->parse(key, "dwarf", &session));
    CHECK_EQ(session.stack_bytes, 8192U);
    CHECK_OK(key->parse(key, "fp", &session));
    CHECK_EQ(session.stack_bytes, 0U);
}

/* For tracepoints it makes a difference whether somebody asked for it. */
TEST(a_frequency_that_is_set_differs_from_the_default) {
    SessionConfig unset, set;
    const ConfigKey *key = config_key("Session", "Frequency");
    char same[] = "99";

    config_session_defaults(&unset, "s");
    config_session_defaults(&set, "s");
    CHECK(!unset.frequency_is_set);
    CHECK_OK(key->parse(key, same, &set));
    CHECK_EQ(set.frequency_hz, unset.frequency_hz);
    CHECK(set.frequency_is_set);
    CHECK_EQ(config_session_fate(&unset, &set), CONFIG_REOPENED);
    CHECK_OK(key->parse(key, "max", &set));
    CHECK_EQ(set.frequency_hz, CONFIG_FREQUENCY_MAX);
    CHECK_OK(key->parse(key, key->fallback, &set));
    CHECK(!set.frequency_is_set);
}

TEST(a_frequency_replaces_a_period) {
    _cleanup_(config_freep) Config *config = NULL;
    const char *expected = NULL;

    CHECK_OK(config_new(&config));
    CHECK_OK(config_set(config, "Session default", "Period", "1000", &expected));
    CHECK_EQ(config->sessions[0].period, (uint64_t)1000);
    CHECK_OK(config_set(config, "Session default", "Frequency", "49", &expected));
    CHECK_EQ(config->sessions[0].period, (uint64_t)0);
    CHECK_OK(config_set(config, "Session default", "Period", "1000", &expected));
    CHECK_EQ(config->sessions[0].period, (uint64_t)1000);
}

TEST(keys_are_set_by_section_and_name) {
    _cleanup_(config_freep) Config *config = NULL;
    const char *expected = NULL;

    CHECK_OK(config_new(&config));
    CHECK_OK(config_set(config, "Session locks", "Event", "lock:*", &expected));
    CHECK_STREQ(config_session(config, "locks")->events, "lock:*");
    CHECK_OK(config_set(config, "Session locks", "Event", "", &expected));
    CHECK_STREQ(config_session(config, "locks")->events, "auto");
    CHECK_EQ(config_set(config, "Session locks", "Frequency", "x", &expected), -EINVAL);
    CHECK_STREQ(expected, "samples a second from 1 to 100000, or max");
    CHECK_EQ(config_set(config, "Profd", "Frequency", "99", &expected), -ENOENT);
    CHECK_EQ(config_set(config, "Session a/b", "Frequency", "99", &expected), -ENOENT);
    CHECK_EQ(config_set(config, "Session", "Frequency", "99", &expected), -ENOENT);
    CHECK_EQ(config_set(config, "", "Frequency", "99", &expected), -ENOENT);
    CHECK_EQ(config->n_sessions, 2U);
}

TEST(names_of_sessions_are_plain) {
    char name[CONFIG_NAME_MAX + 1] = "";

    CHECK(config_name_is_valid("default") && config_name_is_valid("7a.b_c-D"));
    CHECK(!config_name_is_valid("") && !config_name_is_valid(".a") && !config_name_is_valid("-a"));
    CHECK(!config_name_is_valid("a/b") && !config_name_is_valid("a b"));
    CHECK(!config_name_is_valid("\xc3\xa9"));
    memset(name, 'a', CONFIG_NAME_MAX);
    CHECK(!config_name_is_valid(name));
    name[CONFIG_NAME_MAX - 1] = '\0';
    CHECK(config_name_is_valid(name));
}

TEST(percentages_become_bytes) {
    CHECK_EQ(config_amount(CONFIG_BUILT_IN, 1000, 7), (uint64_t)7);
    CHECK_EQ(config_amount(CONFIG_PERCENT | 10, 1000, 7), (uint64_t)100);
    CHECK_EQ(config_amount(CONFIG_PERCENT | 100, UINT64_MAX, 7), UINT64_MAX / 100 * 100);
    CHECK_EQ(config_amount(1 << 20, 1000, 7), (uint64_t)1 << 20);
    CHECK_EQ(config_amount(0, 1000, 7), (uint64_t)0);
    CHECK_EQ(config_amount(CONFIG_NO_LIMIT, 1000, 7), CONFIG_NO_LIMIT);
}

TEST_MAIN()
