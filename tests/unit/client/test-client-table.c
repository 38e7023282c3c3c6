/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/frame/text-table.h"

#include <locale.h>
#include <stdlib.h>

#include "test.h"
#include "util/text.h"

/* clang-format off */
static const Column columns[] = {
    {.name = "NAME"},
    {.name = "COUNT", .right = true},
    {},
};
/* clang-format on */

static const char *printed(Buffer *out, const Context *c, const char *name, uint64_t n) {
    _cleanup_(table_freep) Table *table = NULL;

    if (table_new(c, columns, &table) < 0)
        return "";
    table_printf(table, "%s", name);
    table_count(table, n);
    table_bytes(table, (Bytes){.data = (const uint8_t *)"b", .size = 1});
    table_count(table, 1000);
    if (table_print(table, out) < 0)
        return "";
    text_putc(out, '\0');
    return (const char *)out->data;
}

TEST(columns_are_aligned_under_their_heading) {
    _cleanup_(buffer_done) Buffer out = {};

    CHECK_STREQ(printed(&out, &(Context){}, "something", 7), "NAME       COUNT\n"
                                                             "something      7\n"
                                                             "b           1000\n");
}

TEST(no_legend_omits_the_heading) {
    _cleanup_(buffer_done) Buffer out = {};

    CHECK_STREQ(printed(&out, &(Context){.no_legend = true}, "x", 7), "x         7\n"
                                                                      "b      1000\n");
}

TEST(hostile_names_are_escaped_once) {
    _cleanup_(buffer_done) Buffer out = {};
    const char *text = printed(&out, &(Context){}, "\xff\x1b[2J\\", 1);

    CHECK(strstr(text, "\\xff\\x1b[2J\\x5c "));
    CHECK(!strchr(text, '\x1b'));
}

TEST(names_of_any_script_are_aligned_in_every_locale) {
    static const struct {
        const char *name, *expected;
    } rows[] = {
        /* Latin: a column a character. */
        {"schl\xc3\xbcssel", "NAME       COUNT\nschl\xc3\xbcssel      7\nb           1000\n"},
        /* Han: two columns a character. */
        {"\xe6\x97\xa5\xe6\x9c\xac", "NAME  COUNT\n\xe6\x97\xa5\xe6\x9c\xac      7\nb      1000\n"},
        /* An accent of its own takes none. */
        {"abcde\xcc\x81", "NAME   COUNT\nabcde\xcc\x81      7\nb       1000\n"},
        /* Cut in the middle of a character: no UTF-8, so it is escaped. */
        {"x\xe6\x97", "NAME       COUNT\nx\\xe6\\x97      7\nb           1000\n"},
    };
    static const char *const locales[] = {"C", "C.UTF-8", "POSIX", "de_DE.ISO-8859-1", ""};

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        for (size_t k = 0; k < ARRAY_SIZE(locales); k++) {
            _cleanup_(buffer_done) Buffer out = {};

            (void)setlocale(LC_ALL, locales[k]);
            CHECK_STREQ(printed(&out, &(Context){}, rows[i].name, 7), rows[i].expected);
        }
    (void)setlocale(LC_ALL, "C");
}

TEST(a_narrow_terminal_cuts_only_between_characters) {
    static const Column shrinking[] = {{.name = "NAME", .shrinks = true}, {.name = "N"}, {}};
    _cleanup_(table_freep) Table *table = NULL;
    _cleanup_(buffer_done) Buffer out = {};

    (void)setenv("COLUMNS", "22", 1);
    CHECK_OK(table_new(&(Context){.no_legend = true}, shrinking, &table));
    /* Each takes two of the 19 columns that are left. */
    table_shown(table, "\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5"
                       "\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5");
    table_count(table, 1);
    (void)unsetenv("COLUMNS");
    CHECK_OK(table_print(table, &out));
    text_putc(&out, '\0');
    CHECK_STREQ((const char *)out.data,
                "\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5"
                "\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5   1\n");
}

TEST(the_main_column_keeps_twice_the_width_of_others) {
    static const Column main_last[] = {
        {.name = "A", .shrinks = true}, {.name = "B", .shrinks = true, .is_main = true}, {}};
    _cleanup_(table_freep) Table *table = NULL;
    _cleanup_(buffer_done) Buffer out = {};

    (void)setenv("COLUMNS", "17", 1);
    CHECK_OK(table_new(&(Context){.no_legend = true}, main_last, &table));
    table_shown(table, "aaaaaaaaaaaaaaaaaaaa");
    table_shown(table, "bbbbbbbbbbbbbbbbbbbb");
    (void)unsetenv("COLUMNS");
    CHECK_OK(table_print(table, &out));
    text_putc(&out, '\0');
    CHECK_STREQ((const char *)out.data, "aaaaa  bbbbbbbbbb\n");
}

TEST(a_narrow_terminal_drops_the_least_important_columns_first) {
    static const Column columns_that_drop[] = {{.name = "NAME"},
                                               {.name = "A LONG HEADING", .drops = 2},
                                               {.name = "OTHER", .drops = 1},
                                               {}};
    static const struct {
        const char *width, *expected;
    } rows[] = {
        {"40", "NAME  A LONG HEADING  OTHER\na     b               c\n"},
        {"21", "NAME  A LONG HEADING\na     b\n"},
        {"10", "NAME\na\n"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        _cleanup_(table_freep) Table *table = NULL;
        _cleanup_(buffer_done) Buffer out = {};

        (void)setenv("COLUMNS", rows[i].width, 1);
        CHECK_OK(table_new(&(Context){}, columns_that_drop, &table));
        for (const char *cell = "abc"; *cell; cell++)
            table_printf(table, "%c", *cell);
        CHECK_OK(table_print(table, &out));
        text_putc(&out, '\0');
        CHECK_STREQ((const char *)out.data, rows[i].expected);
    }
    (void)unsetenv("COLUMNS");
}

TEST(a_table_without_rows_prints_nothing) {
    _cleanup_(table_freep) Table *table = NULL;
    _cleanup_(buffer_done) Buffer out = {};

    CHECK_OK(table_new(&(Context){}, columns, &table));
    CHECK_OK(table_print(table, &out));
    CHECK_EQ(out.size, 0U);
}

TEST_MAIN()
