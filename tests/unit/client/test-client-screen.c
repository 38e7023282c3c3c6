/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/frame/screen.h"

#include <stdlib.h>

#include "test.h"
#include "util/text.h"

static const char *text_of(Buffer *b) {
    text_putc(b, '\0');
    return (const char *)b->data;
}

TEST(labels_share_one_column_and_texts_wrap_beside_them) {
    _cleanup_(buffer_done) Buffer out = {};
    Screen s = {.out = &out, .width = 30};

    screen_line(&s, "Disk", COLOR_BAD, "one two three four five");
    screen_line(&s, NULL, COLOR_NONE, "six");
    CHECK_STREQ(text_of(&out), "        Disk: one two three\n"
                               "              four five\n"
                               "              six\n");
}

TEST(a_word_longer_than_the_column_stays_whole) {
    _cleanup_(buffer_done) Buffer out = {};

    screen_wrap(&out, "a bbbbbbbbbbbbbbbbbbbb c", 0, 2, 10);
    CHECK_STREQ(text_of(&out), "a\n  bbbbbbbbbbbbbbbbbbbb\n  c\n");
}

TEST(columns_are_characters_not_bytes) {
    _cleanup_(buffer_done) Buffer out = {};

    screen_wrap(&out, "äää äää", 0, 0, 7);
    CHECK_STREQ(text_of(&out), "äää äää\n");
}

TEST(only_marks_and_labels_are_coloured) {
    _cleanup_(buffer_done) Buffer out = {};
    Screen s = {.out = &out, .width = 80, .colors = true};

    screen_title(&s, COLOR_GOOD, "name", "text");
    screen_line(&s, "Error", COLOR_BAD, "text");
    screen_line(&s, "Disk", COLOR_NONE, "text");
    CHECK_STREQ(text_of(&out), "\x1b[1;32m●\x1b[0m \x1b[1mname\x1b[0m text\n"
                               "       \x1b[1;31mError\x1b[0m: text\n"
                               "        Disk: text\n");
}

TEST(only_a_terminal_gets_colours_or_a_width) {
    Context c = {};

    if (isatty(STDOUT_FILENO))
        TEST_SKIP("standard output is a terminal");
    (void)unsetenv("COLUMNS");
    CHECK(!context_colors(&c));
    CHECK_EQ(context_width(&c), 0U);
    CHECK_EQ(screen_of(&c).width, SIZE_MAX);
}

TEST(the_environment_variable_columns_sets_the_width) {
    static const struct {
        const char *text;
        unsigned width;
    } rows[] = {{"132", 132}, {"0", 0}, {"", 0}, {"wide", 0}, {"-5", 0}, {"99999999999", 0}};
    Context c = {};

    if (isatty(STDOUT_FILENO))
        TEST_SKIP("standard output is a terminal");
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        (void)setenv("COLUMNS", rows[i].text, 1);
        CHECK_EQ(context_width(&c), rows[i].width);
    }
    (void)setenv("COLUMNS", "132", 1);
    CHECK_EQ(screen_of(&c).width, 132U);
    (void)unsetenv("COLUMNS");
}

TEST_MAIN()
