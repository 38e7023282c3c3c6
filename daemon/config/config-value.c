/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config/config-value.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <strings.h>

#include "config/config-number.h"
#include "util/parse.h"

/*
 * Parses values into members. A parser stores its result last, so that an invalid value changes
 * nothing. Lists may be written with commas, spaces or both, and are stored in one form.
 */

enum {
    ZSTD_LEVEL_DEFAULT = 3,
    DWARF_BYTES_DEFAULT = 8192,
    UNWIND_BYTES_DEFAULT = 16384,
    STACK_BYTES_MAX = 65528,
    CPU_MAX = 8191
};

static const char separators[] = ", \t";

static int config_value_parse_percent(const ConfigKey *key, const char *value, uint64_t *ret) {
    int r = config_read_percent(value, ret);

    if (r < 0)
        return r;
    if (*ret == 0 && key->min > 0)
        return -ERANGE;
    *ret |= CONFIG_PERCENT;
    return 0;
}

int config_parse_amount(const ConfigKey *key, const char *value, void *base) {
    uint64_t *at = (uint64_t *)((char *)base + key->offset), v = CONFIG_BUILT_IN;
    int r = 0;

    assert(key->size == sizeof(*at));
    if (strcasecmp(value, "infinity") == 0 && key->max == CONFIG_NO_LIMIT)
        v = CONFIG_NO_LIMIT;
    else if (strchr(value, '%'))
        r = config_value_parse_percent(key, value, &v);
    else if (*value)
        return config_parse_size(key, value, base);
    if (r < 0)
        return r;
    *at = v;
    return 0;
}

/* Parses one of two words. */
static int config_value_parse_word(const char *value, const char *no, const char *yes, bool *ret) {
    *ret = strcmp(value, yes) == 0;
    return *ret || strcmp(value, no) == 0 ? 0 : -EINVAL;
}

int config_parse_storage(const ConfigKey *key _unused_, const char *value, void *base) {
    bool is_volatile;
    int r = config_value_parse_word(value, "persistent", "volatile", &is_volatile);

    if (r == 0)
        ((Config *)base)->storage = is_volatile ? STORAGE_VOLATILE : STORAGE_PERSISTENT;
    return r;
}

int config_parse_layout(const ConfigKey *key _unused_, const char *value, void *base) {
    bool folder;
    int r = config_value_parse_word(value, "file", "directory", &folder);

    if (r == 0)
        ((SessionConfig *)base)->layout = folder ? LAYOUT_DIRECTORY : LAYOUT_FILE;
    return r;
}

/* Returns the text after `word` and a colon, NULL after the word alone. -EINVAL: it is another
 * word. */
static int config_value_split_word(const char *value, const char *word, const char **ret_rest) {
    size_t n = strlen(word);

    if (strncmp(value, word, n) != 0 || (value[n] && value[n] != ':'))
        return -EINVAL;
    *ret_rest = value[n] ? value + n + 1 : NULL;
    return 0;
}

int config_parse_compress(const ConfigKey *key, const char *value, void *base) {
    uint64_t level = ZSTD_LEVEL_DEFAULT;
    const char *rest = NULL;
    int r;

    if (strcmp(value, "none") == 0) {
        ((SessionConfig *)base)->zstd_level = 0;
        return 0;
    }
    r = config_value_split_word(value, "zstd", &rest);
    if (r == 0 && rest)
        r = parse_u64(rest, &level);
    return r < 0 ? r : config_store_number(key, level, base);
}

/* Rejects only what can never be an event; the code that opens events checks the rest. */
int config_parse_events(const ConfigKey *key _unused_, const char *value, void *base) {
    char *events = ((SessionConfig *)base)->events;
    size_t n = strlen(value);
    int open = 0;

    if (n >= CONFIG_EVENTS_MAX)
        return -ERANGE;
    if (n == 0 || value[0] == ',' || value[n - 1] == ',')
        return -EINVAL;
    for (size_t i = 0; i < n; i++) {
        open += (value[i] == '{') - (value[i] == '}');
        if (value[i] <= ' ' || value[i] > '~' || open < 0 || open > 1 ||
            (value[i] == ',' && value[i + 1] == ','))
            return -EINVAL;
    }
    if (open != 0)
        return -EINVAL;
    memset(events, 0, CONFIG_EVENTS_MAX);
    memcpy(events, value, n);
    return 0;
}

int config_parse_frequency(const ConfigKey *key, const char *value, void *base) {
    SessionConfig *session = base;
    uint64_t hz = CONFIG_FREQUENCY_MAX;
    bool is_max = strcmp(value, "max") == 0;
    int r = is_max ? 0 : parse_u64(value, &hz);

    if (r == 0 && !is_max && (hz < key->min || hz > key->max))
        r = -ERANGE;
    if (r < 0)
        return r;
    session->frequency_hz = hz;
    /* The default is passed as the same pointer that the table has. */
    session->frequency_is_set = value != key->fallback;
    session->period = 0;
    return 0;
}

int config_parse_call_graph(const ConfigKey *key _unused_, const char *value, void *base) {
    static const char *const words[] = {
        [CALL_GRAPH_NONE] = "none",
        [CALL_GRAPH_FP] = "fp",
        [CALL_GRAPH_LBR] = "lbr",
        [CALL_GRAPH_AUTO] = "auto",
    };
    SessionConfig *session = base;
    bool is_dwarf = value[0] == 'd';
    uint64_t bytes = is_dwarf ? DWARF_BYTES_DEFAULT : UNWIND_BYTES_DEFAULT;
    const char *rest = NULL;
    int r;

    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        if (words[i] && strcmp(value, words[i]) == 0) {
            session->call_graph = (CallGraph)i;
            session->stack_bytes = 0;
            return 0;
        }
    r = config_value_split_word(value, is_dwarf ? "dwarf" : "unwind", &rest);
    if (r == 0 && rest)
        r = parse_size(rest, &bytes);
    if (r < 0 || bytes < 1 || bytes > STACK_BYTES_MAX)
        return r < 0 ? r : -ERANGE;
    session->call_graph = is_dwarf ? CALL_GRAPH_DWARF : CALL_GRAPH_UNWIND;
    session->stack_bytes = (uint32_t)ALIGN8(bytes);
    return 0;
}

/* Parses a number at *p and advances *p. */
static int config_value_take_number(const char **p, uint64_t max, uint64_t *ret) {
    char digits[12] = {};
    size_t n = strspn(*p, "0123456789");
    int r;

    if (n == 0 || n >= sizeof(digits))
        return n == 0 ? -EINVAL : -ERANGE;
    memcpy(digits, *p, n);
    *p += n;
    r = parse_u64(digits, ret);
    return r < 0 || *ret <= max ? r : -ERANGE;
}

static int config_value_take_cpus(const char **p, uint64_t *ret_first, uint64_t *ret_last) {
    int r = config_value_take_number(p, CPU_MAX, ret_first);

    *ret_last = *ret_first;
    if (r < 0 || **p != '-')
        return r;
    (*p)++;
    r = config_value_take_number(p, CPU_MAX, ret_last);
    return r < 0 || *ret_first <= *ret_last ? r : -EINVAL;
}

int config_parse_cpus(const ConfigKey *key _unused_, const char *value, void *base) {
    char list[CONFIG_CPUS_MAX] = "";
    size_t n = 0;

    value += strspn(value, separators);
    while (*value) {
        uint64_t first, last;
        const char *from = value;
        int r = config_value_take_cpus(&value, &first, &last);

        if (r < 0 || (*value && !strchr(separators, *value)))
            return r < 0 ? r : -EINVAL;
        if (n + (size_t)(value - from) + 2 > sizeof(list))
            return -ERANGE;
        if (n > 0)
            list[n++] = ',';
        memcpy(list + n, from, (size_t)(value - from));
        n += (size_t)(value - from);
        value += strspn(value, separators);
    }
    memcpy(((SessionConfig *)base)->cpus, list, sizeof(list));
    return 0;
}

/* Whether it consists of names between slashes, none of them `.`, `..` or too long. */
static bool config_value_is_path_below(const char *path) {
    while (*path) {
        size_t n = strcspn(path, "/");

        if (n == 0 || n > NAME_MAX || (path[0] == '.' && (n == 1 || (n == 2 && path[1] == '.'))))
            return false;
        for (size_t i = 0; i < n; i++)
            if ((unsigned char)path[i] < ' ' || path[i] == 0x7f)
                return false;
        path += n;
        if (*path && !*++path)
            return false;
    }
    return true;
}

int config_parse_cgroup(const ConfigKey *key _unused_, const char *value, void *base) {
    char path[CONFIG_PATH_MAX] = "";
    bool rooted = *value == '/';
    size_t n;

    value += rooted;
    n = strlen(value);
    n -= n > 0 && value[n - 1] == '/';
    if (n >= sizeof(path))
        return -ERANGE;
    memcpy(path, value, n);
    if ((n == 0 && rooted) || !config_value_is_path_below(path))
        return -EINVAL;
    memcpy(((SessionConfig *)base)->cgroup, path, sizeof(path));
    return 0;
}

uint32_t *config_count_of(const ConfigKey *key, void *base) {
    SessionConfig *session = base;

    return key->offset == offsetof(SessionConfig, tids) ? &session->n_tids : &session->n_pids;
}

int config_parse_pids(const ConfigKey *key, const char *value, void *base) {
    uint32_t pids[CONFIG_PIDS_MAX] = {}, n = 0;

    value += strspn(value, separators);
    while (*value) {
        uint64_t pid;
        int r = config_value_take_number(&value, key->max, &pid);

        if (r < 0 || pid < key->min || (*value && !strchr(separators, *value)))
            return r < 0 ? r : -EINVAL;
        if (n == CONFIG_PIDS_MAX)
            return -ERANGE;
        pids[n++] = (uint32_t)pid;
        value += strspn(value, separators);
    }
    memcpy((char *)base + key->offset, pids, sizeof(pids));
    *config_count_of(key, base) = n;
    return 0;
}
