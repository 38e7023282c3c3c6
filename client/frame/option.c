/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/frame/option.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/clock.h"
#include "util/near.h"
#include "util/parse.h"

/*
 * The option parser. It makes one pass over the words of a command line: an option goes to the
 * first table that has a row for it, everything else is an argument and moves to the front. Long
 * names must be written in full, so that a new option never changes the meaning of an old script.
 * Errors are returned as a sentence; nothing is printed here.
 */

typedef struct Parser {
    const OptionSet *sets;
    size_t n_sets;
    char **argv;
    int argc, at;
    char **why;
} Parser;

_printf_(2, 3) static int wrong(Parser *p, const char *format, ...) {
    va_list ap;
    int r;

    va_start(ap, format);
    r = vasprintf(p->why, format, ap);
    va_end(ap);
    if (r < 0) {
        *p->why = NULL;
        return -ENOMEM;
    }
    return -EINVAL;
}

static const Option *option_find(const Parser *p, char short_name, const char *name, size_t n,
                                 void **ret_settings) {
    for (size_t i = 0; i < p->n_sets; i++)
        for (const Option *o = p->sets[i].options; o && o->long_name; o++) {
            if (name ? strlen(o->long_name) != n || memcmp(o->long_name, name, n) != 0
                     : o->short_name != short_name)
                continue;
            *ret_settings = p->sets[i].settings;
            return o;
        }
    return NULL;
}

static bool option_argument_is_optional(const Option *o) {
    return o->argument && o->argument[0] == '[';
}

/* clang-format off */
/* These words explain the placeholder of an argument. */
static const struct {
    const char *placeholder, *words;
} placeholders[] = {
    { "CPU",       "numbers of CPUs, such as 0-3,8"                                   },
    { "HOST,…",    "names of hosts, such as web1,root@db1"                            },
    { "KEY,…",     "keys, such as comm,dso,symbol; --help lists them"                 },
    { "N",         "a number from 1"                                                  },
    { "PERCENT",   "a share, such as 0.5"                                             },
    { "PID",       "numbers of processes, such as 17 or 17,18"                        },
    { "PID,…",     "numbers of processes, such as 17 or 17,18"                        },
    { "CPU,…",     "numbers of CPUs, such as 0-3,8"                                   },
    { "SIZE",      "a size, such as 500M or 2G"                                       },
    { "SPAN",      "a time span, such as 30s or 1h 30min"                             },
    { "START,END", "a range of time, such as 12.5,13 or 10%-20%"                      },
    { "TID",       "numbers of threads, such as 17 or 17,18"                          },
    { "TID,…",     "numbers of threads, such as 17 or 17,18"                          },
    { "TIME",      "a time, such as 10:00, -5min or '2026-11-21 10:00:00', see TIMES in profctl(1)" },
    { "TYPE,…",    "types of records, such as SAMPLE,MMAP2"                           },
};
/* clang-format on */

static const char *option_expects(const Option *o) {
    for (size_t i = 0; o->argument && i < ARRAY_SIZE(placeholders); i++)
        if (strcmp(placeholders[i].placeholder, o->argument) == 0)
            return placeholders[i].words;
    return o->argument ? o->argument : "nothing";
}

static int option_store(Parser *p, const Option *o, void *settings, const char *argument) {
    int r = o->parse(o, argument, (char *)settings + o->offset);

    if (r == -EINVAL || r == -ERANGE)
        return wrong(p, "Option --%s does not accept '%s': it takes %s.", o->long_name,
                     argument ? argument : "", option_expects(o));
    return r;
}

/* Takes the next word as the argument of an option that needs one. */
static int option_next_word(Parser *p, const Option *o, const char **ret) {
    if (p->at >= p->argc)
        return wrong(p, "Option --%s needs an argument: --%s=%s.", o->long_name, o->long_name,
                     o->argument);
    *ret = p->argv[p->at++];
    return 0;
}

static int option_wrong_name(Parser *p, const char *name, size_t n) {
    _cleanup_free_ char *word = strndup(name, n);
    NearNames near = {};

    for (size_t i = 0; word && i < p->n_sets; i++)
        for (const Option *o = p->sets[i].options; o && o->long_name; o++)
            if (o->help)
                near_offer(&near, o->long_name, near_distance(o->long_name, word));
    if (near.n > 0)
        return wrong(p, "There is no option --%.*s. Did you mean --%s?", (int)n, name,
                     near.names[0].name);
    return wrong(p, "There is no option --%.*s; --help lists the options.", (int)n, name);
}

/* Whether a word is one of the values of a row like "[fp|dwarf[:SIZE]|none]". perf separates the
 * size with a comma. */
static bool option_is_known_value(const Option *o, const char *word) {
    for (const char *at = o->argument + 1; *at && *at != ']';) {
        size_t n = strcspn(at, "[|]");
        bool more = at[n] == '[';

        if (n > 0 && strncmp(at, word, n) == 0 &&
            (!word[n] || (more && (word[n] == ':' || word[n] == ','))))
            return true;
        at += n;
        if (more)
            at += strcspn(at, "]") + 1;
        at += *at == '|';
    }
    return false;
}

/* An optional argument may follow after a space only if it can mean nothing else. */
static const char *option_optional_word(Parser *p, const Option *o) {
    if (!option_argument_is_optional(o) || p->at >= p->argc ||
        !option_is_known_value(o, p->argv[p->at]))
        return NULL;
    return p->argv[p->at++];
}

static int option_parse_long(Parser *p, const char *name) {
    const char *equals = strchr(name, '='), *argument = equals ? equals + 1 : NULL;
    size_t n = equals ? (size_t)(equals - name) : strlen(name);
    void *settings;
    const Option *o = option_find(p, 0, name, n, &settings);
    int r;

    if (!o)
        return option_wrong_name(p, name, n);
    if (argument && !o->argument)
        return wrong(p, "Option --%s takes no argument, leave out '=%s'.", o->long_name, argument);
    if (!argument && o->argument && !option_argument_is_optional(o)) {
        r = option_next_word(p, o, &argument);
        if (r < 0)
            return r;
    }
    if (!argument)
        argument = option_optional_word(p, o);
    return option_store(p, o, settings, argument);
}

/* Parses a cluster of short options: the first that takes an argument gets the rest of the word. */
static int option_parse_short(Parser *p, const char *letters) {
    void *settings;
    int r;

    for (; *letters; letters++) {
        const Option *o = option_find(p, *letters, NULL, 0, &settings);
        const char *argument = NULL;
        bool wants = o && o->argument && !option_argument_is_optional(o);

        if (!o)
            return wrong(p, "There is no option -%c; --help lists the options.", *letters);
        if (o->argument && letters[1] == '=')
            return wrong(p, "Write --%s=%s: an argument of -%c has no '=' before it.", o->long_name,
                         letters + 2, *letters);
        if (wants && letters[1])
            argument = letters + 1;
        else if (wants) {
            r = option_next_word(p, o, &argument);
            if (r < 0)
                return r;
        } else if (!letters[1])
            argument = option_optional_word(p, o);
        r = option_store(p, o, settings, argument);
        if (r < 0 || argument)
            return r;
    }
    return 0;
}

int options_parse(const OptionSet *sets, size_t n_sets, bool stop_at_argument, int argc,
                  char **argv, int *index, int *ret_n, char **ret_why) {
    Parser p = {
        .sets = sets, .n_sets = n_sets, .argv = argv, .argc = argc, .at = *index, .why = ret_why};
    int n = 0, r = 0;
    bool options = true;

    *ret_why = NULL;
    while (p.at < argc && r >= 0) {
        char *word = argv[p.at];
        bool argument = !options || word[0] != '-' || word[1] == '\0';

        if (argument && stop_at_argument)
            break;
        p.at++;
        if (argument)
            argv[*index + n++] = word;
        else if (strcmp(word, "--") == 0)
            options = false;
        else
            r = word[1] == '-' ? option_parse_long(&p, word + 2) : option_parse_short(&p, word + 1);
    }
    if (r < 0)
        return r;
    if (stop_at_argument)
        *index = p.at;
    *ret_n = n;
    return 0;
}

int option_flag(const Option *option, const char *argument, void *field) {
    *(bool *)field = true;
    return 0;
}

int option_string(const Option *option, const char *argument, void *field) {
    *(const char **)field = argument;
    return 0;
}

int option_choice(const Option *option, const char *argument, void *field) {
    size_t n = strlen(argument);
    unsigned i = 1;

    for (const char *p = option->argument; *p; i++) {
        size_t length = strcspn(p, "|");

        if (length == n && memcmp(p, argument, n) == 0) {
            *(unsigned *)field = i;
            return 0;
        }
        p += length + (p[length] == '|');
    }
    return -EINVAL;
}

/* A whole number that ends at one of `ends` or at the end of the word. */
static int option_parse_number(const char **s, const char *ends, uint64_t *ret) {
    char *end;
    uint64_t v;

    if (**s < '0' || **s > '9')
        return -EINVAL;
    errno = 0;
    v = strtoull(*s, &end, (*s)[0] == '0' && ((*s)[1] | 0x20) == 'x' ? 16 : 10);
    if (errno)
        return -errno;
    if (*end && !strchr(ends, *end))
        return -EINVAL;
    *s = end;
    *ret = v;
    return 0;
}

int option_u64(const Option *option, const char *argument, void *field) {
    return option_parse_number(&argument, "", field);
}

int option_count(const Option *option, const char *argument, void *field) {
    uint64_t n;
    int r = option_parse_number(&argument, "", &n);

    if (r < 0 || n == 0)
        return -EINVAL;
    *(uint64_t *)field = n;
    return 0;
}

int option_numbers_add(OptionNumbers *numbers, uint64_t first, uint64_t last) {
    void *p;

    if (first > last || last > UINT32_MAX)
        return -EINVAL;
    p = reallocarray(numbers->items, numbers->n + 1, sizeof(*numbers->items));
    if (!p)
        return -ENOMEM;
    numbers->items = p;
    numbers->items[numbers->n].first = (uint32_t)first;
    numbers->items[numbers->n].last = (uint32_t)last;
    numbers->n++;
    return 0;
}

int option_numbers(const Option *option, const char *argument, void *field) {
    uint64_t first, last;
    int r;

    for (;; argument++) {
        r = option_parse_number(&argument, ",-", &first);
        if (r < 0)
            return r;
        last = first;
        if (*argument == '-') {
            argument++;
            r = option_parse_number(&argument, ",", &last);
            if (r < 0)
                return r;
        }
        r = option_numbers_add(field, first, last);
        if (r < 0 || !*argument)
            return r;
    }
}

bool option_numbers_hold(const OptionNumbers *numbers, uint32_t v) {
    for (size_t i = 0; i < numbers->n; i++)
        if (v >= numbers->items[i].first && v <= numbers->items[i].last)
            return true;
    return false;
}

void option_numbers_done(OptionNumbers *numbers) {
    free(numbers->items);
    *numbers = (OptionNumbers){};
}

/* The length of the next word, including commas between the slashes of a PMU event. */
static size_t option_word_length(const char *s) {
    bool inside = false;
    size_t n = 0;

    for (; s[n] && (s[n] != ',' || inside); n++)
        inside ^= s[n] == '/';
    return n;
}

int option_words(const Option *option, const char *argument, void *field) {
    OptionWords *words = field;

    for (;;) {
        size_t n = option_word_length(argument);
        char **items;

        if (n == 0)
            return -EINVAL;
        items = reallocarray(words->items, words->n + 1, sizeof(*items));
        if (!items)
            return -ENOMEM;
        words->items = items;
        items[words->n] = strndup(argument, n);
        if (!items[words->n])
            return -ENOMEM;
        words->n++;
        if (!argument[n])
            return 0;
        argument += n + 1;
    }
}

void option_words_done(OptionWords *words) {
    for (size_t i = 0; i < words->n; i++)
        free(words->items[i]);
    free(words->items);
    *words = (OptionWords){};
}

int parse_seconds(const char *s, size_t n, uint64_t *ret_ns) {
    const char *p = s, *point;
    uint64_t whole = 0, ns = 0;
    int r = *p == '.' ? 0 : parse_take_digits(&p, &whole);

    point = p;
    if (r == 0 && p > s && *p == '.' && !isdigit((unsigned char)p[1]))
        p++; /* "5." */
    else if (r == 0)
        r = parse_take_fraction(&p, &ns);
    if (r == 0 && (p != s + n || p - point > 1 + 9))
        r = -EINVAL;
    if (r < 0)
        return r;
    if (__builtin_mul_overflow(whole, NS_PER_SECOND, &whole) ||
        __builtin_add_overflow(whole, ns, &ns))
        return -ERANGE;
    *ret_ns = ns;
    return 0;
}
