/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Options as rows. A row is everything known about an option: the parser, --help, --print-options,
 * and through that the completions and the lint test of the manual, use only this table.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/macro.h"

typedef struct Option Option;

struct Option {
    char short_name;       /* 0: none */
    const char *long_name; /* NULL only in the row that ends a table */
    /* NULL: the option takes no argument. "[X]": the argument is optional; it is given as --name=X,
     * or after a space if it is one of the words of the row. "a|b|c": one of these words. A name
     * that ends in FILE, FOLDER or PATH is a path. */
    const char *argument;
    const char *help; /* one line without a full stop; NULL: hidden */
    /* Stores the value into `field`, at `offset` in the settings. `argument` is NULL if none was
     * given. -EINVAL: the argument is invalid, and the parser reports that; -ENOMEM. */
    int (*parse)(const Option *option, const char *argument, void *field);
    size_t offset;
};

/* Fields: bool; const char * (borrowed from argv). */
int option_flag(const Option *option, const char *argument, void *field);
int option_string(const Option *option, const char *argument, void *field);

/* Field: unsigned, the index of the word among "a|b|c" of the row, counted from 1. */
int option_choice(const Option *option, const char *argument, void *field);

/* Field: uint64_t. Decimal, or hex after 0x. */
int option_u64(const Option *option, const char *argument, void *field);
int option_count(const Option *option, const char *argument, void *field); /* from 1 */

/* Numbers separated by commas, with ranges like 2-5; a repeated option adds. */
typedef struct OptionNumbers {
    struct {
        uint32_t first, last;
    } * items;
    size_t n;
} OptionNumbers;
int option_numbers(const Option *option, const char *argument, void *field);
/* Adds a range; -EINVAL if it is not a range of u32. */
int option_numbers_add(OptionNumbers *numbers, uint64_t first, uint64_t last);
bool option_numbers_hold(const OptionNumbers *numbers, uint32_t v);
void option_numbers_done(OptionNumbers *numbers);

/* Words separated by commas, except the commas in pmu/a=1,b=2/; a repeated option adds. */
typedef struct OptionWords {
    char **items;
    size_t n;
} OptionWords;
int option_words(const Option *option, const char *argument, void *field);
void option_words_done(OptionWords *words);

/* Parses n characters as seconds with up to nine decimals, as perf script prints times; -EINVAL for
 * anything but digits and one point, -ERANGE. */
int parse_seconds(const char *s, size_t n, uint64_t *ret_ns);

/* A table of options and the settings that they fill. */
typedef struct OptionSet {
    const Option *options;
    void *settings;
} OptionSet;

/*
 * Parses argv[*index…] with the sets, like getopt_long(): options and arguments may be mixed, `--`
 * ends the options, `-` is an argument. Arguments are moved to the front of argv + *index, and
 * *ret_n is their number. With `stop_at_argument` parsing ends before the first argument and *index
 * points to it. Returns 0, or -EINVAL with one sentence in *ret_why (to be freed), or -ENOMEM.
 */
int options_parse(const OptionSet *sets, size_t n_sets, bool stop_at_argument, int argc,
                  char **argv, int *index, int *ret_n, char **ret_why);
