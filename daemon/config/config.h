/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The configuration: one struct for the daemon, one for each session, one table of keys. A key's
 * default is a text in the table that the key's own parser reads, so the table is the only place
 * that defines it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/config-file.h"
#include "config/config-table.h"
#include "util/buffer.h"
#include "util/macro.h"

enum {
    CONFIG_NAME_MAX = 64,     /* of a session, includes the NUL */
    CONFIG_EVENTS_MAX = 1024, /* the text of Event=, includes the NUL */
    CONFIG_PATH_MAX = 1024,
    CONFIG_CPUS_MAX = 256,
    CONFIG_SESSIONS_MAX = 64,
    CONFIG_PIDS_MAX = 64,
};

/* The session that always exists. */
#define CONFIG_DEFAULT_SESSION "default"
/* The events of a session without Event=. */
#define CONFIG_DEFAULT_EVENT "auto"

typedef enum CallGraph {
    CALL_GRAPH_NONE,
    CALL_GRAPH_FP,
    CALL_GRAPH_DWARF,
    CALL_GRAPH_LBR,
    CALL_GRAPH_UNWIND,
    CALL_GRAPH_AUTO, /* unwind where the host allows it, else fp */
} CallGraph;
typedef enum Layout { LAYOUT_FILE, LAYOUT_DIRECTORY } Layout;
typedef enum Storage { STORAGE_PERSISTENT, STORAGE_VOLATILE } Storage;

/* Amounts of disk that are not a number of bytes; config_amount() converts them. */
#define CONFIG_BUILT_IN UINT64_MAX
#define CONFIG_PERCENT  (1ULL << 63) /* or'ed with 0 to 100: a part of the file system */
#define CONFIG_NO_LIMIT (CONFIG_PERCENT - 1)

#define CONFIG_FREQUENCY_MAX UINT64_MAX

/* Plain data without pointers: two structs are equal when their bytes are. */
typedef struct SessionConfig {
    char name[CONFIG_NAME_MAX];
    bool enabled;
    char events[CONFIG_EVENTS_MAX]; /* perf's syntax, several -e joined by commas */
    uint64_t frequency_hz;          /* CONFIG_FREQUENCY_MAX: the highest allowed */
    bool frequency_is_set;          /* set explicitly; then it applies to tracepoints, too */
    uint64_t period;                /* 0: sample by frequency */
    CallGraph call_graph;
    uint32_t stack_bytes; /* stack size in a sample with CALL_GRAPH_DWARF or _UNWIND; else 0 */
    bool exclude_idle, user_samples, kernel_samples, namespaces;
    char cpus[CONFIG_CPUS_MAX];     /* a list like "0-3,8"; "": all */
    char cgroup[CONFIG_PATH_MAX];   /* relative to the cgroup root, no slash before or after; "":
                                     * none */
    uint32_t pids[CONFIG_PIDS_MAX]; /* processes with all their threads and children */
    uint32_t n_pids;
    uint32_t tids[CONFIG_PIDS_MAX]; /* threads without their process */
    uint32_t n_tids;
    uint64_t buffer_bytes;
    uint64_t rotate_interval_ns;    /* 0: never by time */
    uint64_t max_segment_bytes;     /* after compression; 0: no limit */
    uint64_t max_segment_raw_bytes; /* before compression; 0: no limit */
    int zstd_level;                 /* 0: uncompressed */
    Layout layout;
    uint64_t max_use_bytes;    /* for this session alone; 0: its share of the whole */
    uint64_t max_retention_ns; /* 0: the limit of the whole store */
    uint32_t max_segments;     /* 0: no limit */
    bool runtime;              /* made by config_make_session(), not from a file */
} SessionConfig;

/* Where a key was last set; path NULL: it has its default. */
typedef struct ConfigOrigin {
    const char *path;
    unsigned line;
} ConfigOrigin;

typedef struct Config {
    uint64_t flush_interval_ns;
    uint64_t sync_interval_ns; /* 0: never */
    Storage storage;
    uint64_t max_use_bytes;   /* an amount; default: 10% of the file system, up to a maximum */
    uint64_t keep_free_bytes; /* an amount; default: 15% */
    uint64_t min_use_bytes, runtime_max_use_bytes;
    uint64_t max_retention_ns; /* 0: no limit */
    uint64_t snapshot_max_bytes;
    uint64_t binaries_max_use_bytes;
    uint64_t snapshot_retention_ns;               /* 0: no limit */
    uint64_t max_buffer_total_bytes;              /* an amount, of the host's memory */
    uint64_t max_frequency_hz, max_bytes_per_sec; /* 0: no limit */
    uint32_t max_sessions;
    uint32_t n_sessions;
    unsigned problems;       /* problems that were found and corrected */
    SessionConfig *sessions; /* the session `default`, which always exists, comes first */
    ConfigOrigin *origins;   /* private like the following fields; NULL: not loaded from files */
    char **paths;
    size_t n_paths;
} Config;

/* What a running recorder must update when a key changes; a set. */
typedef enum ConfigTouch {
    CONFIG_TOUCHES_STORE = 1 << 0,   /* limits and the next segments of the store */
    CONFIG_TOUCHES_EVENTS = 1 << 1,  /* the session's events and rings are opened again */
    CONFIG_TOUCHES_DAEMON = 1 << 2,  /* takes effect at once */
    CONFIG_TOUCHES_RESTART = 1 << 3, /* takes effect at the next start */
} ConfigTouch;

/* Rows in the order of the configuration file. */
ConfigTable config_table(void);
/* NULL: no such key. `section` is "Profd" or "Session". */
const ConfigKey *config_key(const char *section, const char *name);

/* Creates a configuration with all defaults and the session `default`. */
int config_new(Config **ret);
Config *config_free(Config *config);
DEFINE_CLEANUP(Config *, config_free);
/* NULL: no such session. */
const SessionConfig *config_session(const Config *config, const char *name);
/* Sets the defaults of a session; the name must be valid. */
void config_session_defaults(SessionConfig *ret, const char *name);
/*
 * Sets a key by section ("Profd", "Session NAME") and name; an empty value means the default. A
 * session that does not exist is added. -ENOENT: no such key or section, -E2BIG: too many sessions,
 * -EINVAL or -ERANGE, with *ret_expected, for an invalid value.
 */
int config_set(Config *config, const char *section, const char *name, const char *value,
               const char **ret_expected);
/* Where a key of the daemon (session NULL) or of a session was set last. */
ConfigOrigin config_origin(const Config *config, const ConfigKey *key, const char *session);
/* Prints the value of a key in a Config or a SessionConfig; parsing the text gives the same
 * value. */
void config_print(const ConfigKey *key, const void *base, Buffer *out);
/* A session's name: a letter or digit, then letters, digits, `.`, `_`, `-`. */
bool config_name_is_valid(const char *name);

typedef struct ConfigSetting {
    const char *key, *value;
} ConfigSetting;
/* Which of the settings is wrong, and what would be valid. */
typedef struct ConfigFault {
    size_t setting;
    char expected[256];
} ConfigFault;
/* Makes a session that is in no file and checks it against the limits of the configuration: -EINVAL
 * with *ret_fault if it is invalid. */
int config_make_session(const Config *config, const char *name, const ConfigSetting *settings,
                        size_t n, SessionConfig *ret, ConfigFault *ret_fault);

/* Converts max_use_bytes or keep_free_bytes to bytes on a file system of that size, or
 * max_buffer_total_bytes with that much memory; CONFIG_BUILT_IN becomes `built_in`. CONFIG_NO_LIMIT
 * is unchanged: it is more than any disk has. */
uint64_t config_amount(uint64_t amount, uint64_t whole_bytes, uint64_t built_in);

/* A ConfigProblem that logs. */
void config_log_problem(void *userdata, const char *path, unsigned line, const char *problem);

/*
 * Loads `path` (NULL: the first profd.conf in /etc, /run, /usr/lib; none is fine) and its drop-ins
 * with systemd's precedence: profd.conf.d/<name>.conf in /usr/lib, /run and /etc for the default
 * path, else in PATH.d next to the file. Accepts valid keys, reports the others, and checks
 * combinations of keys. Returns the number of problems, or a negative errno when a file cannot be
 * read; *ret is then unchanged.
 */
int config_load(const char *path, ConfigProblem on_problem, void *userdata, Config **ret);
/* The same with `root` before the folders of the default path. */
int config_load_below(const char *root, const char *path, ConfigProblem on_problem, void *userdata,
                      Config **ret);

typedef enum ConfigFate {
    CONFIG_KEPT,     /* nothing to do */
    CONFIG_LIMITED,  /* the store gets new limits */
    CONFIG_REOPENED, /* its events are opened again */
    CONFIG_ADDED,    /* it has to be started */
    CONFIG_REMOVED,  /* it has to be stopped */
} ConfigFate;

/* What a change of the daemon's own keys touches: a set of ConfigTouch. */
unsigned config_touches(const Config *old, const Config *new);
/* Copies keys that take effect at the next start from `old` to `new`. */
void config_keep_until_restart(const Config *old, Config *new);
/* What happens to a session; NULL: the configuration has none of that name, and a disabled one
 * counts as none. */
ConfigFate config_session_fate(const SessionConfig *old, const SessionConfig *new);
/*
 * Calls fn for every session that has to change: first those to stop, then the others in the order
 * of the new configuration. A negative return value of fn stops and is returned.
 */
typedef int (*ConfigDiff)(void *userdata, ConfigFate fate, const SessionConfig *old,
                          const SessionConfig *new);
int config_diff(const Config *old, const Config *new, ConfigDiff fn, void *userdata);
