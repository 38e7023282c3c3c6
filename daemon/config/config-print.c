/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <inttypes.h>
#include <string.h>

#include "config/config-number.h"
#include "config/config-value.h"
#include "util/text.h"

/*
 * Prints values, the inverse of the parsers, with one row for each parser that only profd has. It
 * prints the effective value, which may be lower than the one in the file.
 */

typedef void (*Printer)(const ConfigKey *key, const void *base, Buffer *out);

static void config_print_amount(const ConfigKey *key, const void *base, Buffer *out) {
    uint64_t v = config_number_of(key, base);

    if (v == CONFIG_BUILT_IN)
        return;
    if (v == CONFIG_NO_LIMIT)
        text_puts(out, "infinity");
    else if (v & CONFIG_PERCENT)
        text_printf(out, "%" PRIu64 "%%", (uint64_t)(v & ~CONFIG_PERCENT));
    else
        config_put_size(out, v);
}

static void config_print_storage(const ConfigKey *key _unused_, const void *base, Buffer *out) {
    bool is_volatile = ((const Config *)base)->storage == STORAGE_VOLATILE;

    text_puts(out, is_volatile ? "volatile" : "persistent");
}

static void config_print_layout(const ConfigKey *key _unused_, const void *base, Buffer *out) {
    bool folder = ((const SessionConfig *)base)->layout == LAYOUT_DIRECTORY;

    text_puts(out, folder ? "directory" : "file");
}

static void config_print_compress(const ConfigKey *key _unused_, const void *base, Buffer *out) {
    int level = ((const SessionConfig *)base)->zstd_level;

    if (level == 0)
        text_puts(out, "none");
    else
        text_printf(out, "zstd:%d", level);
}

static void config_print_call_graph(const ConfigKey *key _unused_, const void *base, Buffer *out) {
    static const char *const words[] = {
        [CALL_GRAPH_NONE] = "none", [CALL_GRAPH_FP] = "fp",         [CALL_GRAPH_DWARF] = "dwarf",
        [CALL_GRAPH_LBR] = "lbr",   [CALL_GRAPH_UNWIND] = "unwind", [CALL_GRAPH_AUTO] = "auto"};
    const SessionConfig *session = base;

    text_puts(out, words[session->call_graph]);
    if (session->stack_bytes > 0)
        text_printf(out, ":%" PRIu32, session->stack_bytes);
}

static void config_print_text(const ConfigKey *key, const void *base, Buffer *out) {
    text_puts(out, (const char *)base + key->offset);
}

static void config_print_pids(const ConfigKey *key, const void *base, Buffer *out) {
    const uint32_t *pids = (const uint32_t *)(const void *)((const char *)base + key->offset);
    uint32_t n = *config_count_of(key, (void *)base);

    for (uint32_t i = 0; i < n; i++)
        text_printf(out, "%s%" PRIu32, i > 0 ? "," : "", pids[i]);
}

static void config_print_frequency(const ConfigKey *key, const void *base, Buffer *out) {
    if (config_number_of(key, base) == CONFIG_FREQUENCY_MAX)
        text_puts(out, "max");
    else
        text_u64(out, config_number_of(key, base));
}

/* clang-format off */
static const struct {
    int   (*parse)(const ConfigKey *key, const char *value, void *base);
    Printer print;
} rows[] = {
    { config_parse_amount,       config_print_amount      },
    { config_parse_storage,      config_print_storage     },
    { config_parse_layout,       config_print_layout      },
    { config_parse_compress,     config_print_compress    },
    { config_parse_events,       config_print_text        },
    { config_parse_frequency,    config_print_frequency   },
    { config_parse_call_graph,   config_print_call_graph  },
    { config_parse_cpus,         config_print_text        },
    { config_parse_cgroup,       config_print_text        },
    { config_parse_pids,         config_print_pids        },
};
/* clang-format on */

void config_print(const ConfigKey *key, const void *base, Buffer *out) {
    if (config_print_number(key, base, out))
        return;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        if (rows[i].parse == key->parse)
            rows[i].print(key, base, out);
}
