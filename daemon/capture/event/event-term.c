/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>

#include "capture/event/event-parse.h"
#include "capture/event/event-symbol.h"
#include "util/text.h"

/*
 * The terms between slashes: those of every event (config, period, call-graph …), which are rows of
 * one table, and those of a PMU, whose bits are in its folder `format`, and whose folder `events`
 * has sets of values. Terms are read first and then applied to each spec, since one text may have
 * produced specs for several PMUs.
 *
 * As in perf, the value of a PMU's term is added to the bits that are set: an event of sysfs with a
 * default for one of its terms keeps the bits of the default when the term is given again.
 */

enum {
    TERMS_MAX = 64,
    ALIAS_TEXT_MAX = 1024,
    STACK_BYTES_MAX = 65528, /* of a sample, less than 64 KiB and a multiple of 8 */
    STACK_FRAMES_MAX = 127 * 8,
};

typedef struct Term {
    Bytes name, value;
    bool has_value;
    bool is_number;
    uint64_t number; /* 1 where no value is given */
} Term;

typedef struct TermRow {
    const char *name;
    const char *expected; /* what may stand behind the '=' */
    int (*apply)(EventSpec *spec, const Term *term);
} TermRow;

/* -- the terms of every event: 0, -EINVAL for a bad value, -EOPNOTSUPP for one we have no use for -
 */

static int event_term_apply_config(EventSpec *s, const Term *t) {
    uint64_t *words[] = {&s->config, &s->config1, &s->config2, &s->config3};
    unsigned i = t->name.size > strlen("config") ? t->name.data[strlen("config")] - '0' : 0;

    if (!t->is_number || !t->has_value)
        return -EINVAL;
    *words[i] = t->number;
    return 0;
}

static int event_term_apply_name(EventSpec *s, const Term *t) {
    if (!t->has_value || t->value.size == 0)
        return -EINVAL;
    free(s->name);
    s->name = event_strdup(t->value);
    return s->name ? 0 : -ENOMEM;
}

static int event_term_apply_period(EventSpec *s, const Term *t) {
    if (!t->is_number || !t->has_value || t->number == 0 || t->number > INT64_MAX)
        return -EINVAL;
    s->period = t->number;
    s->frequency_hz = 0;
    return 0;
}

static int event_term_apply_freq(EventSpec *s, const Term *t) {
    if (!t->is_number || !t->has_value || t->number == 0 || t->number > UINT32_MAX)
        return -EINVAL;
    s->frequency_hz = t->number;
    s->period = 0;
    return 0;
}

static int event_term_apply_call_graph(EventSpec *s, const Term *t) {
    static const struct {
        const char *name;
        EventCallGraph call_graph;
    } names[] = {
        {"no", EVENT_CALL_GRAPH_NONE},
        {"fp", EVENT_CALL_GRAPH_FP},
        {"dwarf", EVENT_CALL_GRAPH_DWARF},
        {"lbr", EVENT_CALL_GRAPH_LBR},
    };

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (bytes_equal_str(t->value, names[i].name)) {
            s->call_graph = names[i].call_graph;
            return 0;
        }
    return -EINVAL;
}

static int event_term_apply_stack_size(EventSpec *s, const Term *t) {
    if (!t->is_number || !t->has_value || t->number == 0 || t->number > STACK_BYTES_MAX)
        return -EINVAL;
    s->stack_bytes = (uint32_t)ALIGN8(t->number);
    return 0;
}

static int event_term_apply_max_stack(EventSpec *s, const Term *t) {
    if (!t->is_number || !t->has_value || t->number == 0 || t->number > STACK_FRAMES_MAX)
        return -EINVAL;
    s->max_stack = (uint16_t)t->number;
    return 0;
}

static int event_term_apply_time(EventSpec *s _unused_, const Term *t) {
    return t->is_number && t->number == 1 ? 0 : -EINVAL;
}

static int event_term_apply_inherit(EventSpec *s, const Term *t) {
    bool is_no = bytes_equal_str(t->name, "no-inherit");

    if (!t->is_number || t->number > 1)
        return -EINVAL;
    s->no_inherit = is_no == (t->number == 1);
    return 0;
}

static int event_term_apply_branch_type(EventSpec *s, const Term *t) {
    static const struct {
        const char *name;
        uint64_t bits;
    } names[] = {
        {"u", PERF_SAMPLE_BRANCH_USER},
        {"k", PERF_SAMPLE_BRANCH_KERNEL},
        {"hv", PERF_SAMPLE_BRANCH_HV},
        {"any", PERF_SAMPLE_BRANCH_ANY},
        {"any_call", PERF_SAMPLE_BRANCH_ANY_CALL},
        {"any_ret", PERF_SAMPLE_BRANCH_ANY_RETURN},
        {"ind_call", PERF_SAMPLE_BRANCH_IND_CALL},
        {"abort_tx", PERF_SAMPLE_BRANCH_ABORT_TX},
        {"in_tx", PERF_SAMPLE_BRANCH_IN_TX},
        {"no_tx", PERF_SAMPLE_BRANCH_NO_TX},
        {"cond", PERF_SAMPLE_BRANCH_COND},
        {"ind_jmp", PERF_SAMPLE_BRANCH_IND_JUMP},
        {"call", PERF_SAMPLE_BRANCH_CALL},
        {"no_flags", PERF_SAMPLE_BRANCH_NO_FLAGS},
        {"no_cycles", PERF_SAMPLE_BRANCH_NO_CYCLES},
        {"save_type", PERF_SAMPLE_BRANCH_TYPE_SAVE},
        {"stack", PERF_SAMPLE_BRANCH_CALL_STACK},
    };

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (bytes_equal_str(t->value, names[i].name)) {
            s->branch_type = names[i].bits;
            return 0;
        }
    return -EINVAL;
}

static int event_term_apply_nothing(EventSpec *s _unused_, const Term *t) {
    return t->is_number && t->number <= 1 ? 0 : -EINVAL;
}

static int event_term_refuse(EventSpec *s _unused_, const Term *t _unused_) {
    return -EOPNOTSUPP;
}

/* clang-format off */
static const TermRow rows[] = {
    { "config",          "a number",                              event_term_apply_config      },
    { "config1",         "a number",                              event_term_apply_config      },
    { "config2",         "a number",                              event_term_apply_config      },
    { "config3",         "a number",                              event_term_apply_config      },
    { "name",            "a name",                                event_term_apply_name        },
    { "period",          "a number of events",                    event_term_apply_period      },
    { "freq",            "a number of samples a second",          event_term_apply_freq        },
    { "call-graph",      "fp, dwarf, lbr or no",                  event_term_apply_call_graph  },
    { "stack-size",      "a number of bytes up to 65528",         event_term_apply_stack_size  },
    { "max-stack",       "a number of frames up to 1016",         event_term_apply_max_stack   },
    { "time",            "1, since samples are put in order by it", event_term_apply_time      },
    { "inherit",         "0 or 1",                                event_term_apply_inherit     },
    { "no-inherit",      "0 or 1",                                event_term_apply_inherit     },
    { "branch_type",     "one of perf record's branch filters",   event_term_apply_branch_type },
    { "no-overwrite",    "0 or 1",                                event_term_apply_nothing     },
    { "percore",         "0 or 1",                                event_term_apply_nothing     },
    { "overwrite",       "",                                      event_term_refuse            },
    { "nr",              "",                                      event_term_refuse            },
    { "aux-output",      "",                                      event_term_refuse            },
    { "aux-sample-size", "",                                      event_term_refuse            },
};
/* clang-format on */

/* -- reading ------------------------------------------------------------------------------------
 */

/* The text of a value: quoted, or up to the next separator. */
static const char *event_term_read_value(const char *at, Bytes *ret) {
    size_t n;

    if (*at == '\'' && strchr(at + 1, '\'')) {
        n = strcspn(at + 1, "'");
        *ret = (Bytes){.data = (const uint8_t *)at + 1, .size = n};
        return at + n + 2;
    }
    n = strcspn(at, ",/");
    *ret = (Bytes){.data = (const uint8_t *)at, .size = n};
    return at + n;
}

/* Reads terms up to a '/' or the end. Returns their number, or a negative errno after it wrote the
 * sentence. */
static int event_term_read_terms(EventParser *p, const char **at, Term *terms) {
    int n = 0;

    while (**at && **at != '/') {
        Term *t = &terms[n];
        size_t length = strcspn(*at, "=,/");

        if (n == TERMS_MAX - 1)
            return event_fail(p, -EINVAL, "has more than %d terms", TERMS_MAX - 1);
        *t = (Term){.name = {.data = (const uint8_t *)*at, .size = length}, .number = 1};
        *at += length;
        if (**at == '=') {
            t->has_value = true;
            *at = event_term_read_value(*at + 1, &t->value);
        }
        t->is_number = !t->has_value || event_number(t->value, &t->number) == 0;
        if (t->name.size == 0 || t->name.size >= EVENT_WORD_MAX)
            return event_fail(p, -EINVAL, "has a term without a name or with one too long");
        n++;
        if (**at == ',')
            (*at)++;
        else if (**at && **at != '/')
            return event_fail(p, -EINVAL, "has text behind the quoted value of '%.*s'",
                              (int)t->name.size, t->name.data);
    }
    return n;
}

/* -- the terms of a PMU -------------------------------------------------------------------------
 */

/* Moves the value's bits, lowest first, to the positions of the format. */
static uint64_t event_term_spread(uint64_t bits, uint64_t value) {
    uint64_t out = 0;

    for (unsigned i = 0; i < 64; i++)
        if (bits & 1ULL << i) {
            out |= (value & 1) << i;
            value >>= 1;
        }
    return out;
}

static int event_term_apply_format(EventParser *p, EventSpec *s, const Term *t) {
    uint64_t *words[] = {&s->config, &s->config1, &s->config2, &s->config3};
    unsigned n_bits;
    EventFormat f;
    int r = event_pmu_format(p->host, s->pmu, t->name, &f);

    if (r < 0)
        return r;
    n_bits = (unsigned)__builtin_popcountll(f.bits);
    if (!t->is_number)
        return event_fail(p, -EINVAL, "has '%.*s=%.*s', where a number is expected",
                          (int)t->name.size, t->name.data, (int)t->value.size, t->value.data);
    if (n_bits < 64 && t->number >> n_bits != 0)
        return event_fail(p, -EINVAL, "has a value of '%.*s' that is too big, the most is %llu",
                          (int)t->name.size, t->name.data, (1ULL << n_bits) - 1);
    *words[f.word] |= event_term_spread(f.bits, t->number);
    return 0;
}

static int event_term_unknown(EventParser *p, const EventSpec *s, const Term *t) {
    EventNear near = {.wanted = t->name};
    char **names = NULL;
    char hint[1024];

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        if (rows[i].apply != event_term_refuse)
            event_near_offer(&near, rows[i].name);
    for (int folder = 0; s->pmu && folder < 2; folder++) {
        if (event_pmu_names(p->host, s->pmu, folder ? "events" : "format", &names) < 0)
            continue;
        for (size_t i = 0; names[i]; i++)
            event_near_offer(&near, names[i]);
        event_names_free(names);
    }
    event_near_print(&near, hint, sizeof(hint));
    return event_fail(p, -EINVAL, "has the term '%.*s', which %s%s does not have%s",
                      (int)t->name.size, t->name.data, s->pmu ? "the PMU " : "it",
                      s->pmu ? s->pmu : "", hint);
}

static int event_term_bad_value(EventParser *p, const TermRow *row, int r) {
    if (r == -EOPNOTSUPP)
        return event_fail(p, -EINVAL,
                          "has the term '%s', which has no meaning in a recording that "
                          "never ends",
                          row->name);
    if (r == -EINVAL)
        return event_fail(p, r, "has the term '%s' with a bad value, it takes %s", row->name,
                          row->expected);
    return event_fail(p, r, "does not fit into memory");
}

static int event_term_apply_one(EventParser *p, EventSpec *s, const Term *t, bool in_alias) {
    int r = -ENOENT;

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        if (bytes_equal_str(t->name, rows[i].name)) {
            r = rows[i].apply(s, t);
            return r < 0 ? event_term_bad_value(p, &rows[i], r) : 0;
        }
    if (!t->has_value && event_raw(t->name, &s->config) == 0)
        return 0;
    if (!s->pmu)
        return event_term_unknown(p, s, t);
    /* perf accepts an event of the folder by its name alone, and as event=NAME. */
    if (!in_alias && !t->has_value)
        r = event_alias_terms(p, s, t->name);
    else if (!in_alias && !t->is_number && bytes_equal_str(t->name, "event"))
        r = event_alias_terms(p, s, t->value);
    if (r == -ENOENT)
        r = event_term_apply_format(p, s, t);
    return r == -ENOENT ? event_term_unknown(p, s, t) : r;
}

/* An event of sysfs may leave a value open, as "lpar=?"; the other terms must define it. */
static bool event_term_is_open(const Term *t) {
    return t->has_value && bytes_equal_str(t->value, "?");
}

int event_alias_terms(EventParser *p, EventSpec *s, Bytes alias) {
    char text[ALIAS_TEXT_MAX];
    Term terms[TERMS_MAX];
    const char *at = text;
    int n, r;

    r = event_pmu_alias(p->host, s->pmu, alias, text, sizeof(text));
    if (r < 0)
        return r;
    n = event_term_read_terms(p, &at, terms);
    for (int i = 0; i < n && r >= 0; i++)
        if (!event_term_is_open(&terms[i]))
            r = event_term_apply_one(p, s, &terms[i], true);
    return n < 0 ? n : MIN(r, 0);
}

int event_terms(EventParser *p, size_t first) {
    Term terms[TERMS_MAX];
    int n, r = 0;

    if (*p->at != '/')
        return 0;
    p->at++;
    n = event_term_read_terms(p, &p->at, terms);
    if (n < 0)
        return n;
    if (*p->at != '/')
        return event_fail(p, -EINVAL, "has terms that no '/' ends");
    p->at++;
    for (size_t i = first; i < p->list->n; i++)
        for (int j = 0; j < n; j++) {
            r = event_term_apply_one(p, &p->list->specs[i], &terms[j], false);
            if (r < 0)
                return r;
        }
    return 0;
}
