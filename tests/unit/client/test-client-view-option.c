/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/view/view.h"

#include "test.h"

/* The options that all views share. */

static const Option by = {.long_name = "by", .argument = "KEY,…"};

TEST(keys_are_taken_in_the_order_given_and_once) {
    RowKeys keys = {};

    CHECK_OK(view_option_by(&by, "symbol,comm", &keys));
    CHECK_OK(view_option_by(&by, "comm,time", &keys));
    CHECK_EQ(keys.n, 3);
    CHECK_EQ(keys.items[0], ROW_SYMBOL);
    CHECK_EQ(keys.items[1], PROFILE_COMM);
    CHECK_EQ(keys.items[2], PROFILE_TIME);
}

TEST(unknown_and_empty_keys_are_refused) {
    RowKeys keys = {};

    CHECK_EQ(view_option_by(&by, "comm,commander", &keys), -EINVAL);
    CHECK_EQ(view_option_by(&by, "comm,,dso", &keys), -EINVAL);
    CHECK_EQ(view_option_by(&by, "", &keys), -EINVAL);
}

TEST(help_names_every_key) {
    RowKeys keys = {};
    char words[256] = VIEW_KEY_WORDS, *to = words;

    for (const char *p = words; *p; p++)
        if (*p != ' ')
            *to++ = *p;
    *to = '\0';
    CHECK_OK(view_option_by(&by, words, &keys));
    CHECK_EQ(keys.n, ROW_KEYS);
}

TEST(weight_is_the_last_one_given) {
    ViewSettings settings = {};

    CHECK(view_by_period(&settings, true));
    CHECK(!view_by_period(&settings, false));
    CHECK_OK(view_option_period(NULL, NULL, &settings.weight));
    CHECK(view_by_period(&settings, false));
    CHECK_OK(view_option_count(NULL, NULL, &settings.weight));
    CHECK(!view_by_period(&settings, true));
}

TEST_MAIN()
