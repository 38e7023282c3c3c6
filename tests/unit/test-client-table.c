/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/table.h"

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

TEST(no_legend_leaves_the_heading_out) {
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

TEST(a_table_without_rows_prints_nothing) {
    _cleanup_(table_freep) Table *table = NULL;
    _cleanup_(buffer_done) Buffer out = {};

    CHECK_OK(table_new(&(Context){}, columns, &table));
    CHECK_OK(table_print(table, &out));
    CHECK_EQ(out.size, 0U);
}

TEST_MAIN()
