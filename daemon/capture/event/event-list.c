/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture/event/event-list.h"

#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <string.h>

#include "capture/event/event-parse.h"
#include "capture/event/event-symbol.h"

/*
 * The frame of the event grammar: events separated by commas, groups in braces, and in each event
 * the word that names it. The parser reads the text once from left to right and nests no deeper
 * than an event in a group; terms, modifiers, PMUs and tracepoints have files of their own.
 *
 * A word may have several meanings, so they are tried in this order: a name that every machine has,
 * a raw number, an event that a PMU lists in sysfs, a tracepoint, a name that libpfm4 knows.
 */

enum { ERROR_TEXT_MAX = 1024 };

static const char word_letters[] =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.*?[]-";

/* -- the list -----------------------------------------------------------------------------------
 */

static void event_list_spec_done(EventSpec *s) {
    free(s->name);
    free(s->pmu);
    free(s->cpus);
    free(s->system);
    free(s->tracepoint);
}

EventList *event_list_free(EventList *list) {
    if (!list)
        return NULL;
    for (size_t i = 0; i < list->n; i++)
        event_list_spec_done(&list->specs[i]);
    free(list->specs);
    free(list);
    return NULL;
}

static void event_list_truncate(EventList *list, size_t n) {
    while (list->n > n)
        event_list_spec_done(&list->specs[--list->n]);
}

void event_list_remove(EventList *list, size_t index) {
    size_t first = list->specs[index].leader, n = list->specs[first].n_members;

    for (size_t i = first; i < first + n; i++)
        event_list_spec_done(&list->specs[i]);
    memmove(&list->specs[first], &list->specs[first + n],
            (list->n - first - n) * sizeof(*list->specs));
    list->n -= n;
    for (size_t i = first; i < list->n; i++)
        list->specs[i].leader -= n;
}

/* -- one event ----------------------------------------------------------------------------------
 */

static Bytes event_list_take_word(EventParser *p) {
    Bytes word = {.data = (const uint8_t *)p->at, .size = strspn(p->at, word_letters)};

    p->at += word.size;
    return word;
}

static bool event_list_take_char(EventParser *p, char c) {
    if (*p->at != c)
        return false;
    p->at++;
    return true;
}

static Bytes event_list_take_number(EventParser *p) {
    Bytes digits = {.data = (const uint8_t *)p->at,
                    .size = strspn(p->at, "0123456789abcdefABCDEFxX")};

    p->at += digits.size;
    return digits;
}

/* Parses what follows "mem:": an address, a length, and which accesses count. */
static int event_list_parse_breakpoint(EventParser *p) {
    uint64_t address, length = 0;
    EventSpec *s;
    size_t n;
    int r = 0;

    if (event_number(event_list_take_number(p), &address) < 0)
        return event_fail(p, -EINVAL, "needs a number behind 'mem:', as in 'mem:0x1000/8:rw'");
    if (event_list_take_char(p, '/') && event_number(event_list_take_number(p), &length) < 0)
        return event_fail(p, -EINVAL, "needs 1, 2, 4 or 8 behind the '/'");
    s = event_list_add(p, &r);
    if (!s)
        return r;
    n = *p->at == ':' ? strspn(p->at + 1, "rwx") : 0;
    for (size_t i = 1; i <= n; i++) {
        uint32_t access = p->at[i] == 'r'   ? HW_BREAKPOINT_R
                          : p->at[i] == 'w' ? HW_BREAKPOINT_W
                                            : HW_BREAKPOINT_X;

        if (s->bp_type & access)
            return event_fail(p, -EINVAL, "has '%c' twice", p->at[i]);
        s->bp_type |= access;
    }
    p->at += n > 0 ? n + 1 : 0;
    if (s->bp_type == 0)
        s->bp_type = HW_BREAKPOINT_RW;
    s->type = PERF_TYPE_BREAKPOINT;
    s->config1 = address;
    s->config2 = length                          ? length
                 : s->bp_type == HW_BREAKPOINT_X ? sizeof(long)
                                                 : HW_BREAKPOINT_LEN_4;
    s->default_period = 1;
    return 0;
}

/* A name that every machine has, or a raw number: -ENOENT when it is neither. */
static int event_list_parse_symbol(EventParser *p, Bytes word) {
    size_t first = p->list->n;
    EventSpec found = {};
    EventSpec *s;
    int r = event_symbol(word, &found);

    if (r < 0) {
        r = event_raw(word, &found.config);
        found.type = PERF_TYPE_RAW;
    }
    if (r < 0)
        return r;
    s = event_list_add(p, &r);
    if (!s)
        return r;
    s->type = found.type;
    s->config = found.config;
    s->default_period = found.default_period;
    s->is_auto = found.is_auto;
    return event_spread(p, first);
}

/* Type and config as numbers: "1:0". */
static int event_list_parse_numeric(EventParser *p, Bytes word) {
    uint64_t type, config;
    EventSpec *s;
    int r = 0;

    if (*p->at != ':' || event_number(word, &type) < 0)
        return -ENOENT;
    p->at++;
    if (type > UINT32_MAX || event_number(event_list_take_number(p), &config) < 0)
        return event_fail(p, -EINVAL, "needs two numbers, a type and a config, as in '1:0'");
    s = event_list_add(p, &r);
    if (!s)
        return r;
    s->type = (uint32_t)type;
    s->config = config;
    return 0;
}

/* libpfm4 has modifiers of its own, so it is asked for the whole text first, and then for the text
 * before the last colon. */
static int event_list_parse_pfm(EventParser *p) {
    size_t n = strcspn(p->event, ",{}/");
    char text[EVENT_TEXT_MAX];
    EventSpec found = {};
    EventSpec *s;
    int r;

    memcpy(text, p->event, n);
    text[n] = '\0';
    r = event_pfm(text, &found);
    if (r == -ENOENT && strrchr(text, ':')) {
        n = (size_t)(strrchr(text, ':') - text);
        text[n] = '\0';
        r = event_pfm(text, &found);
    }
    if (r < 0)
        return r;
    s = event_list_add(p, &r);
    if (!s)
        return r;
    found.name = s->name;
    found.leader = s->leader;
    found.n_members = 1;
    *s = found;
    p->at = p->event + n;
    return 0;
}

static int event_list_module_is_missing(EventParser *p, Bytes word) {
    return event_fail(p, -ENOPKG, "may be of the kernel module '%.*s', which is not loaded",
                      (int)word.size, (const char *)word.data);
}

/* Machines without counters have no PMU `cpu`; the message names this reason. */
static int event_list_unknown_pmu(EventParser *p, Bytes word) {
    EventNear near = {.wanted = word};
    char hint[1024], **names = NULL;

    if (event_pmu_names(p->host, NULL, NULL, &names) == 0)
        for (size_t i = 0; names[i]; i++)
            event_near_offer(&near, names[i]);
    event_names_free(names);
    event_near_offer_symbols(&near);
    event_near_print(&near, hint, sizeof(hint));
    if (event_module_is_missing(p->host, word))
        return event_list_module_is_missing(p, word);
    return event_fail(p, -EINVAL, "names the PMU '%.*s', which this machine does not have%s",
                      (int)word.size, (const char *)word.data, hint);
}

/* Without tracefs it is unknown whether the words name a tracepoint. */
static bool event_list_lacks_tracefs(const EventParser *p) {
    _cleanup_close_ int fd = -1;

    return p->host->open_tracefs && p->host->open_tracefs(p->host->userdata, "./", &fd) == -ENOENT;
}

static int event_list_unknown_event(EventParser *p, Bytes word, EventNear *near) {
    char hint[1024];

    if (*p->at == '/')
        return event_list_unknown_pmu(p, word);
    if (near->wanted.size == 0)
        near->wanted = word;
    if (near->wanted.data == word.data)
        event_near_offer_symbols(near);
    event_near_print(near, hint, sizeof(hint));
    if (*p->at == ':' && event_module_is_missing(p->host, word))
        return event_list_module_is_missing(p, word);
    if (near->names.n > 0)
        return event_fail(p, -EINVAL, "is not known%s", hint);
    if (*p->at == ':' && event_list_lacks_tracefs(p))
        return event_fail(p, -ENOPKG, "may be a tracepoint, but tracefs is not mounted here");
    return event_fail(p, -EINVAL,
                      "is not known; perf list shows what this machine has, and rNNN or "
                      "pmu/config=N/ count by number");
}

static int event_list_parse_tracepoint(EventParser *p, Bytes system, EventNear *near) {
    const char *at = p->at;
    Bytes name;
    int r;

    if (!event_list_take_char(p, ':'))
        return -ENOENT;
    name = event_list_take_word(p);
    r = name.size > 0 ? event_add_tracepoints(p, system, name, near) : -ENOENT;
    if (r == -ENOENT)
        p->at = at;
    return r;
}

/* Adds what the word at p->at names. */
static int event_list_parse_what(EventParser *p) {
    Bytes word = event_list_take_word(p);
    EventNear near = {};
    int r;

    if (word.size == 0)
        return event_fail(p, -EINVAL,
                          "is empty or begins with a character that no event begins with");
    if (word.size >= EVENT_WORD_MAX)
        return event_fail(p, -EINVAL, "has a name longer than %d letters", EVENT_WORD_MAX - 1);
    if (bytes_equal_str(word, "mem") && event_list_take_char(p, ':'))
        return event_list_parse_breakpoint(p);
    r = event_list_parse_numeric(p, word);
    if (r == -ENOENT)
        r = event_list_parse_symbol(p, word);
    if (r == -ENOENT && *p->at == '/')
        r = event_add_pmus(p, word);
    if (r == -ENOENT && *p->at != '/')
        r = event_add_alias(p, word);
    if (r == -ENOENT)
        r = event_list_parse_tracepoint(p, word, &near);
    if (r == -ENOENT && !p->host->no_vendor_names)
        r = event_list_parse_pfm(p);
    if (r == -ENOENT && event_is_tool(word))
        return event_fail(p, -EINVAL, "is counted by perf stat itself and cannot be sampled");
    return r == -ENOENT ? event_list_unknown_event(p, word, &near) : r;
}

static int event_list_name_event(EventParser *p, size_t first) {
    Bytes text = {.data = (const uint8_t *)p->event, .size = (size_t)(p->at - p->event)};

    for (size_t i = first; i < p->list->n; i++) {
        EventSpec *s = &p->list->specs[i];

        if (!s->name)
            s->name = s->is_auto ? event_auto_name(text) : event_strdup(text);
        if (!s->name)
            return event_fail(p, -ENOMEM, "does not fit into memory");
    }
    return 0;
}

static int event_list_parse_event(EventParser *p) {
    size_t first = p->list->n;
    bool has_terms;
    int r;

    p->event = p->at;
    r = event_list_parse_what(p);
    if (r < 0)
        return r;
    has_terms = *p->at == '/';
    r = event_terms(p, first);
    if (r < 0)
        return r;
    if (*p->at == ':' || has_terms) {
        (void)event_list_take_char(p, ':');
        r = event_modifiers(p, first, false);
    }
    if (r == 0 && *p->at && *p->at != ',' && *p->at != '}')
        return event_fail(
            p, -EINVAL, "has unexpected text at offset %zu, where ':', ',' or the end is expected",
            (size_t)(p->at - p->text));
    return r == 0 ? event_list_name_event(p, first) : r;
}

/* -- groups and the whole -----------------------------------------------------------------------
 */

static bool event_list_same_pmu(const EventSpec *a, const EventSpec *b) {
    return a->cpus && b->cpus ? strcmp(a->cpus, b->cpus) == 0 : a->cpus == b->cpus;
}

/* Members that count on other CPUs than their leader form groups of their own, each in one stretch.
 * Members that count on any CPU stay with the first. */
static void event_list_gather_groups(EventSpec *specs, size_t first, size_t n) {
    for (size_t leader = first; leader < n;) {
        size_t end = leader + 1;

        for (size_t i = end; i < n; i++)
            if (event_list_same_pmu(&specs[i], &specs[leader]) ||
                (leader == first && !specs[i].cpus)) {
                EventSpec moved = specs[i];

                memmove(&specs[end + 1], &specs[end], (i - end) * sizeof(moved));
                specs[end++] = moved;
            }
        for (size_t i = leader; i < end; i++)
            specs[i].leader = leader;
        specs[leader].n_members = end - leader;
        leader = end;
    }
}

/* "{a,b}:S", with or without a name in front. */
static int event_list_parse_group(EventParser *p) {
    size_t first = p->list->n;
    int r;

    p->event = p->at;
    p->at = strchr(p->at, '{') + 1;
    do {
        r = event_list_parse_event(p);
        if (r < 0)
            return r;
    } while (event_list_take_char(p, ','));
    if (!event_list_take_char(p, '}'))
        return event_fail(p, -EINVAL, "is in a group that is not closed by '}'");
    event_list_gather_groups(p->list->specs, first, p->list->n);
    return event_list_take_char(p, ':') ? event_modifiers(p, first, true) : 0;
}

static bool event_list_is_group(const char *at) {
    return at[strspn(at, word_letters)] == '{';
}

/* Returns the comma that ends the event or group at `at`, or the end of the text. */
static const char *event_list_item_end(const char *at) {
    bool has_terms = true, in_terms = false, begins = true;
    unsigned depth = 0;

    for (; *at; at++) {
        if (begins)
            has_terms = strncmp(at, "mem:", 4) != 0;
        begins = !in_terms && (*at == ',' || *at == '{');
        if (*at == '/' && has_terms)
            in_terms = !in_terms;
        if (in_terms)
            continue;
        if (*at == ',' && depth == 0)
            break;
        depth += *at == '{';
        depth -= *at == '}' && depth > 0;
    }
    return at;
}

static int event_list_parse_item(EventParser *p) {
    int r = event_list_is_group(p->at) ? event_list_parse_group(p) : event_list_parse_event(p);

    if (r < 0 || !*p->at || *p->at == ',')
        return r;
    p->event = p->at;
    return event_fail(p, -EINVAL, "stands where ',' or the end is expected");
}

static int event_list_parse_all(EventParser *p) {
    int r;

    do {
        const char *item = p->at;
        size_t before = p->list->n;

        r = event_list_parse_item(p);
        if (r < 0 && r != -ENOMEM && p->on_bad) {
            event_list_truncate(p->list, before);
            p->at = event_list_item_end(item);
            r = p->on_bad(p->userdata, r, p->error);
        }
        if (r < 0)
            return r;
    } while (event_list_take_char(p, ','));
    return 0;
}

static int event_list_parse_text(EventParser *p, EventList **ret) {
    _cleanup_(event_list_freep) EventList *list = calloc(1, sizeof(*list));
    int r;

    p->at = p->event = p->text;
    p->list = list;
    if (!list)
        return event_fail(p, -ENOMEM, "does not fit into memory");
    if (strlen(p->text) >= EVENT_TEXT_MAX)
        return event_fail(p, -EINVAL, "is part of a text of more than %d letters",
                          EVENT_TEXT_MAX - 1);
    r = event_list_parse_all(p);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(list);
    return 0;
}

int event_list_parse(const char *text, const EventHost *host, EventList **ret, char *error,
                     size_t error_size) {
    EventParser p = {.text = text, .host = host, .error = error, .error_size = error_size};

    return event_list_parse_text(&p, ret);
}

int event_list_parse_each(const char *text, const EventHost *host, EventListBad on_bad,
                          void *userdata, EventList **ret) {
    char error[ERROR_TEXT_MAX] = "";
    EventParser p = {.text = text,
                     .host = host,
                     .error = error,
                     .error_size = sizeof(error),
                     .on_bad = on_bad,
                     .userdata = userdata};

    return event_list_parse_text(&p, ret);
}
