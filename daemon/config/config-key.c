/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config/config-number.h"
#include "config/config-value.h"

/*
 * The table of keys: everything about a key is in its row. Lint tests compare profd.conf and
 * profd.conf(5) with it.
 */

#define MS      1000000ULL
#define S       (1000 * MS)
#define HOUR    (3600 * S)
#define CENTURY (36525 * 24 * HOUR)
#define K       (1ULL << 10)
#define M       (1ULL << 20)
#define G       (1ULL << 30)
#define T       (1ULL << 40)

enum { FREQUENCY_MAX_HZ = 100000, ZSTD_LEVEL_MAX = 22, PID_MAX = 1 << 22, SEGMENTS_MAX = 1000000 };

/* No key of profd is a secret. */
#define OF_D(field) offsetof(Config, field), sizeof(((Config *)NULL)->field), false
#define OF_S(field) offsetof(SessionConfig, field), sizeof(((SessionConfig *)NULL)->field), false
/* Two adjacent members that one key sets. */
#define CALL_GRAPH                                                                                 \
    offsetof(SessionConfig, call_graph),                                                           \
        offsetof(SessionConfig, stack_bytes) + sizeof(uint32_t) -                                  \
            offsetof(SessionConfig, call_graph),                                                   \
        false
#define FREQUENCY                                                                                  \
    offsetof(SessionConfig, frequency_hz),                                                         \
        offsetof(SessionConfig, frequency_is_set) + sizeof(bool) -                                 \
            offsetof(SessionConfig, frequency_hz),                                                 \
        false
#define EVENTS  CONFIG_TOUCHES_EVENTS
#define STORE   CONFIG_TOUCHES_STORE
#define DAEMON  CONFIG_TOUCHES_DAEMON
#define RESTART CONFIG_TOUCHES_RESTART

/* clang-format off */
static const ConfigKey keys[] = {
    { "Profd",   "FlushIntervalSec",  "5s",         "a time span from 10ms to 1h, such as 500ms or 5s",                   config_parse_span,         10 * MS, HOUR,             OF_D(flush_interval_ns),      DAEMON  },
    { "Profd",   "SyncIntervalSec",   "5min",       "a time span of at least 1s, such as 5min, or infinity",              config_parse_span_limit,   S,       CENTURY,          OF_D(sync_interval_ns),       STORE   },
    { "Profd",   "Storage",           "persistent", "persistent or volatile",                                             config_parse_storage,      0,       0,                OF_D(storage),                RESTART },
    { "Profd",   "MaxUse",            "",           "a size of at least 1M, a percentage such as 10%, or infinity",       config_parse_amount,       M,       CONFIG_NO_LIMIT,  OF_D(max_use_bytes),          STORE   },
    { "Profd",   "KeepFree",          "",           "a size or a percentage such as 15%",                                 config_parse_amount,       0,       1024 * T,         OF_D(keep_free_bytes),        STORE   },
    { "Profd",   "MinUse",            "256M",       "a size such as 256M",                                                config_parse_size,         0,       1024 * T,         OF_D(min_use_bytes),          STORE   },
    { "Profd",   "RuntimeMaxUse",     "64M",        "a size of at least 1M",                                              config_parse_size,         M,       1024 * T,         OF_D(runtime_max_use_bytes),  STORE   },
    { "Profd",   "MaxRetentionSec",   "7d",         "a time span of at least 1s, such as 7d, or infinity",                config_parse_span_limit,   S,       CENTURY,          OF_D(max_retention_ns),       STORE   },
    { "Profd",   "SnapshotMaxUse",    "2G",         "a size of at least 1M",                                              config_parse_size,         M,       1024 * T,         OF_D(snapshot_max_bytes),     STORE   },
    { "Profd",   "SnapshotMaxRetentionSec", "30d",  "a time span of at least 1s, such as 30d, or infinity",               config_parse_span_limit,   S,       CENTURY,          OF_D(snapshot_retention_ns),  STORE   },
    { "Profd",   "BinariesMaxUse",    "512M",       "a size such as 512M, or 0",                                          config_parse_size,         0,       1024 * T,         OF_D(binaries_max_use_bytes), STORE   },
    { "Profd",   "MaxBufferTotal",    "",           "a size from 64K to 64G, or a percentage of the memory such as 2%",   config_parse_amount,       64 * K,  64 * G,           OF_D(max_buffer_total_bytes), RESTART },
    { "Profd",   "MaxFrequency",      "infinity",   "samples a second from 1 to 100000, or infinity",                     config_parse_count_limit,  1,       FREQUENCY_MAX_HZ, OF_D(max_frequency_hz),       RESTART },
    { "Profd",   "MaxSessions",       "16",         "a number from 1 to 64",                                              config_parse_count,        1,       CONFIG_SESSIONS_MAX, OF_D(max_sessions),        DAEMON  },
    { "Profd",   "MaxBytesPerSec",    "infinity",   "a size of at least 1K, or infinity",                                 config_parse_size_limit,   K,       T,                OF_D(max_bytes_per_sec),      DAEMON  },
    { "Session", "Enabled",           "yes",        "yes or no",                                                          config_parse_bool,         0,       1,                OF_S(enabled),                EVENTS  },
    { "Session", "Event",             CONFIG_DEFAULT_EVENT, "events as perf record -e takes them, without spaces, 1023 characters at most", config_parse_events, 0,   0,                OF_S(events),                 EVENTS  },
    { "Session", "Frequency",         "99",         "samples a second from 1 to 100000, or max",                          config_parse_frequency,    1,       FREQUENCY_MAX_HZ, FREQUENCY,                    EVENTS  },
    { "Session", "Period",            "0",          "a number of events between samples, or 0",                           config_parse_count,        0,       INT64_MAX,        OF_S(period),                 EVENTS  },
    { "Session", "CallGraph",         "auto",       "auto, fp, unwind, unwind:SIZE up to 65528, dwarf, dwarf:SIZE, lbr or none", config_parse_call_graph,   0,       0,                CALL_GRAPH,                   EVENTS  },
    { "Session", "ExcludeIdle",       "yes",        "yes or no",                                                          config_parse_bool,         0,       1,                OF_S(exclude_idle),           EVENTS  },
    { "Session", "UserSamples",       "yes",        "yes or no",                                                          config_parse_bool,         0,       1,                OF_S(user_samples),           EVENTS  },
    { "Session", "KernelSamples",     "yes",        "yes or no",                                                          config_parse_bool,         0,       1,                OF_S(kernel_samples),         EVENTS  },
    { "Session", "Namespaces",        "no",         "yes or no",                                                          config_parse_bool,         0,       1,                OF_S(namespaces),             EVENTS  },
    { "Session", "CPUs",              "",           "a list of CPUs such as 0-3,8",                                       config_parse_cpus,         0,       0,                OF_S(cpus),                   EVENTS  },
    { "Session", "Cgroup",            "",           "the path of a control group below the root of all, as system.slice", config_parse_cgroup,     0,       0,                OF_S(cgroup),                 EVENTS  },
    { "Session", "Pid",               "",           "up to 64 numbers of processes",                                      config_parse_pids,         1,       PID_MAX,          OF_S(pids),                   EVENTS  },
    { "Session", "Tid",               "",           "up to 64 numbers of threads",                                        config_parse_pids,         1,       PID_MAX,          OF_S(tids),                   EVENTS  },
    { "Session", "BufferSize",        "512K",       "a power of two from 8K to 64M",                                      config_parse_power_of_two, 8 * K,   64 * M,           OF_S(buffer_bytes),           EVENTS  },
    { "Session", "RotateIntervalSec", "10min",      "a time span of at least 1s, or infinity",                            config_parse_span_limit,   S,       CENTURY,          OF_S(rotate_interval_ns),     STORE   },
    { "Session", "MaxSegmentSize",    "64M",        "a size of at least 64K, or infinity",                                config_parse_size_limit,   64 * K,  T,                OF_S(max_segment_bytes),      STORE   },
    { "Session", "MaxSegmentRaw",     "512M",       "a size of at least 64K, or infinity",                                config_parse_size_limit,   64 * K,  T,                OF_S(max_segment_raw_bytes),  STORE   },
    { "Session", "Compress",          "zstd:3",     "none, zstd, or zstd:1 to zstd:22",                                   config_parse_compress,     1,       ZSTD_LEVEL_MAX,   OF_S(zstd_level),             STORE   },
    { "Session", "Layout",            "file",       "file or directory",                                                  config_parse_layout,       0,       0,                OF_S(layout),                 STORE   },
    { "Session", "MaxUse",            "infinity",   "a size of at least 1M, or infinity",                                 config_parse_size_limit,   M,       1024 * T,         OF_S(max_use_bytes),          STORE   },
    { "Session", "MaxRetentionSec",   "infinity",   "a time span of at least 1s, or infinity",                            config_parse_span_limit,   S,       CENTURY,          OF_S(max_retention_ns),       STORE   },
    { "Session", "MaxSegments",       "infinity",   "a number from 1 to 1000000, or infinity",                            config_parse_count_limit,  1,       SEGMENTS_MAX,     OF_S(max_segments),           STORE   },
};
/* clang-format on */

ConfigTable config_table(void) {
    return (ConfigTable){.keys = keys, .n = ARRAY_SIZE(keys)};
}

const ConfigKey *config_key(const char *section, const char *name) {
    return config_table_find(config_table(), section, name);
}
