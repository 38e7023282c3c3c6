/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config/config.h"

#include <errno.h>
#include <ini.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "util/macro.h"
#include "util/parse.h"

/*
 * inih splits lines into section, key and value; the table gives them a meaning. inih hands a line
 * longer than its buffer to the handler cut short before it reports the error, and it does not
 * count lines, so our own reader does both: it counts, and it refuses the long line as a whole.
 */

enum { FREQUENCY_MAX_HZ = 100000, BUFFER_MIN = 8192, BUFFER_MAX = 64 << 20, ZSTD_LEVEL_MAX = 22 };

static int parse_frequency(const char *value, void *ret) {
    uint64_t hz;
    int r = parse_u64(value, &hz);

    if (r < 0 || hz < 1 || hz > FREQUENCY_MAX_HZ)
        return r < 0 ? r : -ERANGE;
    *(uint64_t *)ret = hz;
    return 0;
}

static int parse_buffer(const char *value, void *ret) {
    uint64_t bytes;
    int r = parse_size(value, &bytes);

    if (r < 0 || bytes < BUFFER_MIN || bytes > BUFFER_MAX || (bytes & (bytes - 1)) != 0)
        return r < 0 ? r : -ERANGE;
    *(uint64_t *)ret = bytes;
    return 0;
}

static int parse_yes_no(const char *value, void *ret) {
    return parse_bool(value, ret);
}

static int parse_interval(const char *value, void *ret) {
    uint64_t ns;
    int r = parse_span(value, &ns);

    if (r < 0 || ns == 0)
        return r < 0 ? r : -ERANGE;
    *(uint64_t *)ret = ns;
    return 0;
}

static int parse_call_graph(const char *value, void *ret) {
    bool fp = strcmp(value, "fp") == 0;

    if (!fp && strcmp(value, "none") != 0)
        return -EINVAL;
    *(bool *)ret = fp;
    return 0;
}

static int parse_compress(const char *value, void *ret) {
    uint64_t level = 3;
    int r = 0;

    if (strcmp(value, "none") == 0) {
        *(int *)ret = 0;
        return 0;
    }
    if (strncmp(value, "zstd", 4) != 0 || (value[4] && value[4] != ':'))
        return -EINVAL;
    if (value[4])
        r = parse_u64(value + 5, &level);
    if (r < 0 || level < 1 || level > ZSTD_LEVEL_MAX)
        return r < 0 ? r : -ERANGE;
    *(int *)ret = (int)level;
    return 0;
}

#define DEFAULT_SESSION "Session default"
#define IN(member)      offsetof(Config, member)

/* clang-format off */
static const ConfigKey keys[] = {
    { "Profd",         "FlushIntervalSec", "5s",     "a time span as 500ms, 5s or 1min",             parse_interval,   IN(flush_interval_ns) },
    { DEFAULT_SESSION, "Frequency",        "99",     "samples a second from 1 to 100000",            parse_frequency,  IN(frequency_hz)      },
    { DEFAULT_SESSION, "CallGraph",        "fp",     "fp or none",                                   parse_call_graph, IN(call_graph)        },
    { DEFAULT_SESSION, "ExcludeIdle",      "yes",    "yes or no",                                    parse_yes_no,     IN(exclude_idle)      },
    { DEFAULT_SESSION, "KernelSamples",    "yes",    "yes or no",                                    parse_yes_no,     IN(kernel_samples)    },
    { DEFAULT_SESSION, "BufferSize",       "512K",   "a power of two from 8K to 64M",                parse_buffer,     IN(buffer_bytes)      },
    { DEFAULT_SESSION, "Compress",         "zstd:3", "none, zstd, or zstd:1 to zstd:22",             parse_compress,   IN(zstd_level)        },
};
/* clang-format on */

const ConfigKey *config_keys(size_t *ret_n) {
    *ret_n = ARRAY_SIZE(keys);
    return keys;
}

void config_set_defaults(Config *config) {
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        int r = keys[i].parse(keys[i].fallback, (char *)config + keys[i].offset);

        assert(r == 0);
        (void)r;
    }
}

int config_set(Config *config, const char *section, const char *name, const char *value,
               const char **ret_expected) {
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        int r;

        if (strcmp(keys[i].section, section) != 0 || strcmp(keys[i].name, name) != 0)
            continue;
        r = keys[i].parse(value, (char *)config + keys[i].offset);
        if (r < 0)
            *ret_expected = keys[i].expected;
        return r;
    }
    return -ENOENT;
}

typedef struct Load {
    Config config;
    FILE *file;
    const char *path;
    unsigned line;
    int problems;
    ConfigProblem on_problem;
    void *userdata;
} Load;

static void report(Load *load, const char *problem) {
    load->problems++;
    if (load->on_problem)
        load->on_problem(load->userdata, load->path, load->line, problem);
}

/* A line for inih, as fgets() gives it. One that does not fit is passed over and left empty. */
static char *next_line(char *buffer, int size, void *userdata) {
    Load *load = userdata;
    int c;

    if (!fgets(buffer, size, load->file))
        return NULL;
    load->line++;
    if (strchr(buffer, '\n') || feof(load->file))
        return buffer;
    c = fgetc(load->file);
    if (c == EOF)
        return buffer;
    while (c != '\n' && c != EOF)
        c = fgetc(load->file);
    report(load, "This line is longer than 198 characters, shorten it");
    strcpy(buffer, "\n");
    return buffer;
}

static int on_key(void *userdata, const char *section, const char *name, const char *value) {
    Load *load = userdata;
    const char *expected = NULL;
    char problem[512];
    int r = config_set(&load->config, section, name, value, &expected);

    if (r == -ENOENT)
        snprintf(problem, sizeof(problem), "There is no key '%s' in section [%s]", name, section);
    else if (r < 0)
        snprintf(problem, sizeof(problem), "%s= takes %s, not '%s'", name, expected, value);
    if (r < 0)
        report(load, problem);
    return 1;
}

static void fclosep(FILE **f) {
    if (*f)
        (void)fclose(*f);
}

int config_load(Config *config, const char *path, ConfigProblem on_problem, void *userdata) {
    Load load = {.config = *config, .path = path, .on_problem = on_problem, .userdata = userdata};
    _cleanup_(fclosep) FILE *file = fopen(path, "re");
    int first_bad;

    if (!file)
        return -errno;
    load.file = file;
    first_bad = ini_parse_stream(next_line, &load, on_key, &load);
    if (ferror(file))
        return -EIO;
    if (first_bad < 0)
        return -ENOMEM;
    if (first_bad > 0) {
        load.line = (unsigned)first_bad;
        report(&load, "This line is no [section], no Key=value and no comment");
    }
    *config = load.config;
    return load.problems;
}
