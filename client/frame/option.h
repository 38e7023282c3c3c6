/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Options as rows. A row is all that is known of an option: the parser, --help, --print-options,
 * and through that the completions and the lint of the man page read it and nothing else.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/macro.h"

typedef struct Option Option;

struct Option {
    char short_name;       /* 0: none */
    const char *long_name; /* never NULL but in the row that ends a table */
    /* NULL: the option takes no argument. "[X]": the argument may be left out; it is given as
     * --name=X, or behind a space where it is one of the words of the row. "a|b|c": one of these
     * words. A name that ends in FILE, FOLDER or PATH is one. */
    const char *argument;
    const char *help; /* one line without a full stop; NULL: hidden */
    /* Stores into `field`, which lies `offset` bytes into the settings. `argument` is NULL where
     * none was given. -EINVAL: the argument is wrong, and the parser says so; -ENOMEM. */
    int (*parse)(const Option *option, const char *argument, void *field);
    size_t offset;
};

/* Fields: bool; const char * (borrowed from argv). */
int option_flag(const Option *option, const char *argument, void *field);
int option_string(const Option *option, const char *argument, void *field);

/* Field: unsigned, the index of the word among the "a|b|c" of the row, counted from 1. */
int option_choice(const Option *option, const char *argument, void *field);

/* Field: uint64_t. Decimal, or hex after 0x. */
int option_u64(const Option *option, const char *argument, void *field);

/* Numbers separated by commas, ranges as 2-5; an option given twice adds. */
typedef struct OptionNumbers {
    struct {
        uint32_t first, last;
    } * items;
    size_t n;
} OptionNumbers;
int option_numbers(const Option *option, const char *argument, void *field);
/* A range; -EINVAL when it is none of u32. */
int option_numbers_add(OptionNumbers *numbers, uint64_t first, uint64_t last);
bool option_numbers_hold(const OptionNumbers *numbers, uint32_t v);
void option_numbers_done(OptionNumbers *numbers);

/* Words separated by commas, but not by those in pmu/a=1,b=2/; an option given twice adds. */
typedef struct OptionWords {
    char **items;
    size_t n;
} OptionWords;
int option_words(const Option *option, const char *argument, void *field);
void option_words_done(OptionWords *words);

/* n characters as seconds with up to nine decimals, as perf script prints the time of a recording's
 * own clock; -EINVAL for anything else than digits and one point, -ERANGE. */
int parse_seconds(const char *s, size_t n, uint64_t *ret_ns);

/* A table of options and the settings that it fills. */
typedef struct OptionSet {
    const Option *options;
    void *settings;
} OptionSet;

/*
 * Parses argv[*index…] against the sets, as getopt_long() does: options and arguments may be
 * mixed, `--` ends the options, `-` is an argument. Arguments are moved to the front of
 * argv + *index, their number is put into *ret_n. With `stop_at_argument` parsing ends before the
 * first argument and *index is left pointing at it. Returns 0, or -EINVAL with one sentence in
 * *ret_why (to be freed), or -ENOMEM.
 */
int options_parse(const OptionSet *sets, size_t n_sets, bool stop_at_argument, int argc,
                  char **argv, int *index, int *ret_n, char **ret_why);
