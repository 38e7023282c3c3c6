/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/frame/option.h"

#include "client/frame/help.h"
#include "client/profctl.h"
#include "test.h"
#include "util/text.h"

/* Command lines against a table of every kind of option, and the tables of profctl themselves. */

typedef struct Settings {
    bool flag, other;
    const char *word, *maybe;
    unsigned choice;
    uint64_t number;
    OptionNumbers numbers;
    OptionWords words;
} Settings;

static int option_maybe(const Option *option, const char *argument, void *field) {
    *(const char **)field = argument ? argument : "nothing";
    return 0;
}

/* clang-format off */
static const Option options[] = {
    {'f', "flag",    NULL,         "F", option_flag,    offsetof(Settings, flag)},
    {'g', "other",   NULL,         "O", option_flag,    offsetof(Settings, other)},
    {'w', "word",    "WORD",       "W", option_string,  offsetof(Settings, word)},
    {'m', "maybe",   "[WORD]",     "M", option_maybe,   offsetof(Settings, maybe)},
    {0,   "choice",  "one|two|six","C", option_choice,  offsetof(Settings, choice)},
    {0,   "number",  "N",          "N", option_u64,     offsetof(Settings, number)},
    {'p', "numbers", "N,…",        "N", option_numbers, offsetof(Settings, numbers)},
    {0,   "words",   "W,…",        "W", option_words,   offsetof(Settings, words)},
    {},
};
/* clang-format on */

typedef struct Line {
    Settings settings;
    char *argv[16];
    int argc, index, n, r;
    char *why;
} Line;

static void line_done(Line *l) {
    option_numbers_done(&l->settings.numbers);
    option_words_done(&l->settings.words);
    free(l->why);
}

/* Parses the words of a line that single spaces separate. */
static void line_parse(Line *l, const char *text, bool stop) {
    static char words[512];
    char *save = NULL;

    *l = (Line){};
    snprintf(words, sizeof(words), "%s", text);
    for (char *w = strtok_r(words, " ", &save); w; w = strtok_r(NULL, " ", &save))
        l->argv[l->argc++] = w;
    l->r = options_parse(&(OptionSet){options, &l->settings}, 1, stop, l->argc, l->argv, &l->index,
                         &l->n, &l->why);
}

TEST(options_and_arguments_may_be_mixed) {
    _cleanup_(line_done) Line l;

    line_parse(&l, "a --flag b -w c - --word=d e", false);
    CHECK_OK(l.r);
    CHECK_EQ(l.n, 4);
    CHECK_STREQ(l.argv[0], "a");
    CHECK_STREQ(l.argv[1], "b");
    CHECK_STREQ(l.argv[2], "-");
    CHECK_STREQ(l.argv[3], "e");
    CHECK(l.settings.flag && !l.settings.other);
    CHECK_STREQ(l.settings.word, "d");
}

TEST(two_dashes_end_the_options) {
    _cleanup_(line_done) Line l;

    line_parse(&l, "-f -- -g --word", false);
    CHECK_OK(l.r);
    CHECK_EQ(l.n, 2);
    CHECK_STREQ(l.argv[0], "-g");
    CHECK_STREQ(l.argv[1], "--word");
    CHECK(!l.settings.other);
}

TEST(short_options_may_be_joined_and_the_last_takes_the_rest) {
    _cleanup_(line_done) Line l, m;

    line_parse(&l, "-fgwvalue x", false);
    line_parse(&m, "-fw value", false);
    CHECK_OK(l.r);
    CHECK(l.settings.flag && l.settings.other);
    CHECK_EQ(l.n, 1);
    CHECK_OK(m.r);
    CHECK_STREQ(m.settings.word, "value");
}

TEST(an_optional_argument_needs_an_equals_sign) {
    _cleanup_(line_done) Line l, m;

    line_parse(&l, "--maybe x", false);
    CHECK_OK(l.r);
    CHECK_STREQ(l.settings.maybe, "nothing");
    CHECK_EQ(l.n, 1);
    line_parse(&m, "-mf --maybe=x", false);
    CHECK_OK(m.r);
    CHECK_STREQ(m.settings.maybe, "x");
    CHECK(m.settings.flag);
}

TEST(parsing_stops_before_the_first_argument_when_asked) {
    _cleanup_(line_done) Line l;

    line_parse(&l, "-f command -g", true);
    CHECK_OK(l.r);
    CHECK_EQ(l.index, 1);
    CHECK(!l.settings.other);
}

TEST(an_error_is_a_sentence_that_names_the_word) {
    static const struct {
        const char *line, *named;
    } cases[] = {
        {"--nonsense", "--nonsense"},
        {"-x", "-x"},
        {"--fla", "--fla"},
        {"--flag=yes", "--flag"},
        {"--word", "--word"},
        {"-w", "--word"},
        {"--choice=three", "three"},
        {"--choice=", "--choice"},
        {"--number=12x", "12x"},
        {"--number=-1", "-1"},
        {"--number=99999999999999999999", "--number"},
        {"--numbers=1,,2", "1,,2"},
        {"--numbers=5-2", "5-2"},
        {"--numbers=4294967296", "4294967296"},
        {"--words=a,", "a,"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_(line_done) Line l;

        line_parse(&l, cases[i].line, false);
        CHECK_EQ(l.r, -EINVAL);
        CHECK(l.why);
        CHECK(strstr(l.why, cases[i].named));
        CHECK(strchr(".?", l.why[strlen(l.why) - 1]));
    }
}

TEST(values_are_stored_by_their_kind) {
    _cleanup_(line_done) Line l;

    line_parse(&l, "--choice two --number 0x1f -p 1,3-5 --numbers=9 --words a,bc --words d", false);
    CHECK_OK(l.r);
    CHECK_EQ(l.settings.choice, 2U);
    CHECK_EQ(l.settings.number, 31U);
    CHECK_EQ(l.settings.numbers.n, 3U);
    CHECK(option_numbers_hold(&l.settings.numbers, 4));
    CHECK(option_numbers_hold(&l.settings.numbers, 9));
    CHECK(!option_numbers_hold(&l.settings.numbers, 2));
    CHECK_EQ(l.settings.words.n, 3U);
    CHECK_STREQ(l.settings.words.items[1], "bc");
}

TEST(commas_inside_an_event_do_not_split_it) {
    _cleanup_(line_done) Line l;

    line_parse(&l, "--words cpu/event=0x3c,umask=1/u,cycles,intel_pt//", false);
    CHECK_OK(l.r);
    CHECK_EQ(l.settings.words.n, 3U);
    CHECK_STREQ(l.settings.words.items[0], "cpu/event=0x3c,umask=1/u");
    CHECK_STREQ(l.settings.words.items[2], "intel_pt//");
}

TEST(seconds_keep_every_nanosecond) {
    static const char *const wrong[] = {"1.0000000001", ".", "1e5"};
    static const struct {
        const char *text;
        uint64_t ns;
    } cases[] = {
        {"0", 0},           {"1498.837980123", 1498837980123},     {".5", 500000000},
        {"7.", 7000000000}, {"18446744073.709551615", UINT64_MAX},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        uint64_t ns = 1;

        CHECK_OK(parse_seconds(cases[i].text, strlen(cases[i].text), &ns));
        CHECK_EQ(ns, cases[i].ns);
    }
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
        CHECK_EQ(parse_seconds(wrong[i], strlen(wrong[i]), &(uint64_t){0}), -EINVAL);
    CHECK_EQ(parse_seconds("18446744073.709551616", 21, &(uint64_t){0}), -ERANGE);
    CHECK_EQ(parse_seconds("99999999999", 11, &(uint64_t){0}), -ERANGE);
}

/* A name must be found by one row only, whichever tables a command line is parsed against. */
static bool name_is_taken_twice(const Option *mine) {
    for (const Option *a = mine; a && a->long_name; a++) {
        for (const Option *b = a + 1; b->long_name; b++)
            if (strcmp(a->long_name, b->long_name) == 0 ||
                (a->short_name && a->short_name == b->short_name))
                return true;
        for (const Option *b = mine == global_options ? a + 1 : global_options; b->long_name; b++)
            if (strcmp(a->long_name, b->long_name) == 0 ||
                (a->short_name && a->short_name == b->short_name))
                return true;
    }
    return false;
}

TEST(every_row_of_the_option_tables_is_complete_and_unambiguous) {
    CHECK(!name_is_taken_twice(global_options));
    for (size_t i = 0; commands[i]; i++) {
        const Command *c = commands[i];

        CHECK(c->name && c->summary && c->arguments && c->run);
        CHECK(c->n_min <= c->n_max);
        CHECK(command_by_name(commands, c->name) == c);
        CHECK(!name_is_taken_twice(c->options));
        for (const Option *o = c->options; o && o->long_name; o++) {
            CHECK(o->parse);
            CHECK(o->help && o->help[strlen(o->help) - 1] != '.');
            CHECK(o->offset < c->settings_size);
        }
    }
}

static const char *said_of(const char *word, char *text, size_t size) {
    char *argv[] = {(char *)"profctl", (char *)word, NULL};
    _cleanup_free_ char *why = NULL;
    int index = 1, n = 0;
    Context c = {};

    (void)options_parse(&(OptionSet){global_options, &c}, 1, true, 2, argv, &index, &n, &why);
    snprintf(text, size, "%s", why ? why : "");
    return text;
}

TEST(a_similar_option_is_suggested_for_a_typo) {
    char text[256];

    CHECK_STREQ(said_of("--no-pagr", text, sizeof(text)),
                "There is no option --no-pagr. Did you mean --no-pager?");
    CHECK(strstr(said_of("--xyzzy", text, sizeof(text)), "--help lists the options"));
}

TEST(an_equals_sign_after_a_short_option_names_the_long_one) {
    char text[256];

    CHECK_STREQ(said_of("-j=off", text, sizeof(text)),
                "Write --json=off: an argument of -j has no '=' before it.");
    CHECK_STREQ(said_of("-H=web1", text, sizeof(text)),
                "Write --host=web1: an argument of -H has no '=' before it.");
}

static const char *chosen;

static int choose(const Option *option, const char *argument, void *field) {
    chosen = argument ? argument : "nothing";
    return 0;
}

TEST(an_optional_argument_after_a_space_is_accepted_if_it_is_a_known_word) {
    static const Option rows[] = {{'g', "call-graph", "[fp|dwarf[:SIZE]|lbr|none]", "x", choose, 0},
                                  {}};
    static const struct {
        const char *option, *next, *chosen;
        int n;
    } cases[] = {
        {"--call-graph", "dwarf", "dwarf", 0},
        {"--call-graph", "dwarf,16384", "dwarf,16384", 0},
        {"--call-graph", "dwarf:8K", "dwarf:8K", 0},
        {"-g", "lbr", "lbr", 0},
        {"-g", "web", "nothing", 1},
        {"-g", "dwarfs", "nothing", 1},
        {"-g", "fp,8", "nothing", 1},
        {"--call-graph=none", "fp", "none", 1},
    };
    char settings = 0;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char *argv[] = {(char *)"profctl", (char *)cases[i].option, (char *)cases[i].next, NULL};
        _cleanup_free_ char *why = NULL;
        int index = 1, n = 0;

        CHECK_OK(options_parse(&(OptionSet){rows, &settings}, 1, false, 3, argv, &index, &n, &why));
        CHECK_STREQ(chosen, cases[i].chosen);
        CHECK_EQ(n, cases[i].n);
    }
}

static size_t columns(const char *line) {
    size_t n = 0;

    for (; *line && *line != '\n'; line++)
        n += ((unsigned char)*line & 0xc0) != 0x80;
    return n;
}

TEST(help_names_every_option_and_stays_within_80_columns) {
    (void)unsetenv("COLUMNS");
    for (size_t i = 0; commands[i]; i++) {
        Context c = {.commands = commands, .options = global_options};
        Buffer *out = &c.out.buffer;
        char name[64];
        bool named = true, fits = true;

        help_print_command(&c, commands[i]);
        text_putc(out, '\0');
        for (const Option *o = commands[i]->options; o && o->long_name; o++) {
            snprintf(name, sizeof(name), "--%s", o->long_name);
            named = named && strstr((char *)out->data, name);
        }
        for (char *line = (char *)out->data; line && fits; line = strchr(line, '\n')) {
            line += *line == '\n';
            fits = columns(line) <= 80;
        }
        buffer_done(out);
        CHECK(named);
        CHECK(fits);
    }
}

TEST_MAIN()
