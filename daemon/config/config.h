/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The configuration: one struct for the daemon, one for each session, one table of keys. A key's
 * default is a text in the table that goes through the key's own parser, so what the table says is
 * what holds.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/buffer.h"
#include "util/macro.h"

enum {
    CONFIG_NAME_MAX = 64,     /* of a session, with its NUL */
    CONFIG_EVENTS_MAX = 1024, /* the text of Event=, with its NUL */
    CONFIG_PATH_MAX = 1024,
    CONFIG_CPUS_MAX = 256,
    CONFIG_SESSIONS_MAX = 64,
    CONFIG_PIDS_MAX = 64,
};

/* The session that is always there. */
#define CONFIG_DEFAULT_SESSION "default"
/* What a session records where nobody says otherwise. */
#define CONFIG_DEFAULT_EVENT "auto"

typedef enum CallGraph {
    CALL_GRAPH_NONE,
    CALL_GRAPH_FP,
    CALL_GRAPH_DWARF,
    CALL_GRAPH_LBR
} CallGraph;
typedef enum Layout { LAYOUT_FILE, LAYOUT_DIRECTORY } Layout;
typedef enum Storage { STORAGE_PERSISTENT, STORAGE_VOLATILE } Storage;

/* Amounts of disk that are no number of bytes; config_amount() makes them one. */
#define CONFIG_BUILT_IN UINT64_MAX
#define CONFIG_PERCENT  (1ULL << 63) /* or'ed with 0 to 100: of the file system */
#define CONFIG_NO_LIMIT (CONFIG_PERCENT - 1)

#define CONFIG_FREQUENCY_MAX UINT64_MAX

/* Plain data: two of them are equal when their bytes are. */
typedef struct SessionConfig {
    char name[CONFIG_NAME_MAX];
    bool enabled;
    char events[CONFIG_EVENTS_MAX]; /* perf's syntax, several -e joined by commas */
    uint64_t frequency_hz;          /* CONFIG_FREQUENCY_MAX: as high as is allowed */
    bool frequency_is_said;         /* and not the default; then it holds for tracepoints, too */
    uint64_t period;                /* 0: by frequency */
    CallGraph call_graph;
    uint32_t dwarf_bytes; /* of stack, with CALL_GRAPH_DWARF; else 0 */
    bool exclude_idle, user_samples, kernel_samples, namespaces;
    char cpus[CONFIG_CPUS_MAX];     /* a list as "0-3,8"; "": all */
    char cgroup[CONFIG_PATH_MAX];   /* below the cgroup root, no slash before or after; "": none */
    uint32_t pids[CONFIG_PIDS_MAX]; /* processes with all their threads and children */
    uint32_t n_pids;
    uint32_t tids[CONFIG_PIDS_MAX]; /* threads alone */
    uint32_t n_tids;
    uint64_t buffer_bytes;
    uint64_t rotate_interval_ns;    /* 0: never by time */
    uint64_t max_segment_bytes;     /* stored; 0: no limit */
    uint64_t max_segment_raw_bytes; /* before compression; 0: no limit */
    int zstd_level;                 /* 0: not compressed */
    Layout layout;
    uint64_t max_use_bytes;    /* of this session alone; 0: its share of the whole */
    uint64_t max_retention_ns; /* 0: that of the whole */
    uint32_t max_segments;     /* 0: any number */
    bool runtime;              /* by config_make_session(), not of a file */
} SessionConfig;

/* Where a key was last set; path NULL: nowhere. */
typedef struct ConfigOrigin {
    const char *path;
    unsigned line;
} ConfigOrigin;

typedef struct Config {
    uint64_t flush_interval_ns;
    uint64_t sync_interval_ns; /* 0: never */
    Storage storage;
    uint64_t max_use_bytes;   /* an amount; built in: 10% of the file system, capped */
    uint64_t keep_free_bytes; /* an amount; built in: 15% */
    uint64_t min_use_bytes, runtime_max_use_bytes;
    uint64_t max_retention_ns; /* 0: for ever */
    uint64_t snapshot_max_bytes;
    uint64_t snapshot_retention_ns; /* 0: for ever */
    uint64_t max_buffer_total_bytes;
    uint64_t max_frequency_hz, max_bytes_per_sec; /* 0: no limit */
    uint32_t max_sessions;
    uint32_t n_sessions;
    unsigned problems;       /* what was wrong and replaced by something right */
    SessionConfig *sessions; /* `default` first, which always is there */
    ConfigOrigin *origins;   /* private, as the rest; NULL: it was not loaded */
    char **paths;
    size_t n_paths;
} Config;

/* What a changed key asks for in a recorder that runs; a set. */
typedef enum ConfigTouch {
    CONFIG_TOUCHES_STORE = 1 << 0,   /* limits and the next segments */
    CONFIG_TOUCHES_EVENTS = 1 << 1,  /* events and rings of the session open anew */
    CONFIG_TOUCHES_DAEMON = 1 << 2,  /* taken over as it runs */
    CONFIG_TOUCHES_RESTART = 1 << 3, /* holds from the next start on */
} ConfigTouch;

typedef struct ConfigKey ConfigKey;
struct ConfigKey {
    const char *section; /* "Profd" or "Session" */
    const char *name;
    const char *fallback; /* the default, as one would write it */
    const char *expected; /* what is right, for people */
    /* Into a Config or a SessionConfig, which is untouched on failure. */
    int (*parse)(const ConfigKey *key, const char *value, void *base);
    uint64_t min, max; /* of what the parser reads, both included */
    size_t offset, size;
    ConfigTouch touches;
};

/* Rows in the order of the configuration file; *ret_n of them. */
const ConfigKey *config_keys(size_t *ret_n);
/* "Profd" or "Session"; NULL: no such key. */
const ConfigKey *config_key(const char *section, const char *name);

/* All defaults, and the session `default`. */
int config_new(Config **ret);
Config *config_free(Config *config);
DEFINE_CLEANUP(Config *, config_free);
/* NULL: no such session. */
const SessionConfig *config_session(const Config *config, const char *name);
/* What a session is where nobody says otherwise; the name is valid. */
void config_session_defaults(SessionConfig *ret, const char *name);
/*
 * By section ("Profd", "Session NAME") and name; an empty value stands for the default. A session
 * that does not exist is added. -ENOENT: no such key or section, -E2BIG: too many sessions,
 * -EINVAL or -ERANGE, with *ret_expected, for a bad value.
 */
int config_set(Config *config, const char *section, const char *name, const char *value,
               const char **ret_expected);
/* Where a key of the daemon (session NULL) or of a session was set last. */
ConfigOrigin config_origin(const Config *config, const ConfigKey *key, const char *session);
/* The value of a key in a Config or a SessionConfig, as one would write it; parsing it gives the
 * same again. */
void config_print(const ConfigKey *key, const void *base, Buffer *out);
/* A session's name: a letter or digit, then letters, digits, `.`, `_`, `-`. */
bool config_name_is_valid(const char *name);

typedef struct ConfigSetting {
    const char *key, *value;
} ConfigSetting;
/* Which of them is wrong, and what would be right. */
typedef struct ConfigFault {
    size_t setting;
    char expected[256];
} ConfigFault;
/* A session that no file has, held against what the configuration lets it have: -EINVAL with
 * *ret_fault when it cannot be. */
int config_make_session(const Config *config, const char *name, const ConfigSetting *settings,
                        size_t n, SessionConfig *ret, ConfigFault *ret_fault);

/* max_use_bytes and keep_free_bytes as bytes of a file system of that size; `built_in` is what the
 * caller makes of CONFIG_BUILT_IN. CONFIG_NO_LIMIT stays what it is: more than any disk has. */
uint64_t config_amount(uint64_t amount, uint64_t file_system_bytes, uint64_t built_in);

/* Called for each problem, with the line it is in (0: the file as a whole) and one sentence. */
typedef void (*ConfigProblem)(void *userdata, const char *path, unsigned line, const char *problem);
/* One that logs it. */
void config_log_problem(void *userdata, const char *path, unsigned line, const char *problem);

/*
 * Loads `path` (NULL: profd.conf from /etc, /run, /usr/lib, the first there is, and none is fine)
 * and, with it, the drop-ins of systemd's precedence: profd.conf.d/<name>.conf in /usr/lib, /run
 * and /etc for the default path, in PATH.d beside the file else. Takes in what is right and reports
 * the rest; what keys say together is checked, too. Returns the number of problems, or a negative
 * errno when a file cannot be read; *ret is then untouched.
 */
int config_load(const char *path, ConfigProblem on_problem, void *userdata, Config **ret);
/* The same with `root` before the folders of the default path. */
int config_load_below(const char *root, const char *path, ConfigProblem on_problem, void *userdata,
                      Config **ret);

typedef enum ConfigFate {
    CONFIG_KEPT,     /* nothing to do */
    CONFIG_LIMITED,  /* the store takes new limits */
    CONFIG_REOPENED, /* its events open anew */
    CONFIG_ADDED,    /* there is one more to start */
    CONFIG_REMOVED,  /* there is one to stop */
} ConfigFate;

/* What becomes of the daemon's own keys: a set of ConfigTouch. */
unsigned config_touches(const Config *old, const Config *new);
/* Keys that hold from the next start on stay in `new` as they are in `old`. */
void config_keep_until_restart(const Config *old, Config *new);
/* What becomes of a session; NULL where a configuration has none of that name, and one that is not
 * enabled is as good as none. */
ConfigFate config_session_fate(const SessionConfig *old, const SessionConfig *new);
/*
 * Every session of either configuration that has to change: those to stop first, then the others
 * in the order of the new one. A negative return of fn ends the walk and is returned.
 */
typedef int (*ConfigDiff)(void *userdata, ConfigFate fate, const SessionConfig *old,
                          const SessionConfig *new);
int config_diff(const Config *old, const Config *new, ConfigDiff fn, void *userdata);
