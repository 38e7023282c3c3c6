/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "profile/frame-names.h"

#include "test.h"

/* Texts and names of frames. */

static Bytes text(const char *s, size_t n) {
    return (Bytes){.data = (const uint8_t *)s, .size = n};
}

TEST(texts_are_numbered_once) {
    _cleanup_(text_set_freep) TextSet *set = NULL;
    uint32_t a, b, again, empty;

    CHECK_OK(text_set_new(&set));
    CHECK_OK(text_set_add(set, text("main", 4), &a));
    CHECK_OK(text_set_add(set, text("main\0x", 6), &b));
    CHECK_OK(text_set_add(set, text("main", 4), &again));
    CHECK_OK(text_set_add(set, (Bytes){}, &empty));
    CHECK_EQ(empty, 0);
    CHECK_EQ(a, again);
    CHECK(a != b);
    CHECK_EQ(text_set_count(set), 3);
    CHECK_EQ(text_set_get(set, b).size, 6);
    CHECK_STREQ((const char *)text_set_get(set, a).data, "main");
}

TEST(looking_for_a_text_adds_none) {
    _cleanup_(text_set_freep) TextSet *set = NULL;
    uint32_t number, found = 77;

    CHECK_OK(text_set_new(&set));
    CHECK(!text_set_find(set, text("main", 4), &found));
    CHECK_EQ(found, 77);
    CHECK_EQ(text_set_count(set), 1);
    CHECK_OK(text_set_add(set, text("main", 4), &number));
    CHECK(text_set_find(set, text("main", 4), &found));
    CHECK_EQ(found, number);
}

TEST(many_texts_keep_their_numbers) {
    _cleanup_(text_set_freep) TextSet *set = NULL;
    uint32_t number;

    CHECK_OK(text_set_new(&set));
    for (unsigned i = 0; i < 10000; i++)
        CHECK_OK(text_set_add(set, text((const char *)&i, sizeof(i)), &number));
    CHECK_EQ(text_set_count(set), 10001);
    for (unsigned i = 0; i < 10000; i++) {
        CHECK(text_set_find(set, text((const char *)&i, sizeof(i)), &number));
        CHECK_EQ(number, i + 1);
    }
    CHECK_EQ(text_set_bytes(set), 1 + 10000 * (sizeof(unsigned) + 1));
}

TEST(the_function_of_a_frame_is_the_one_that_contains_the_code) {
    _cleanup_(frame_names_freep) FrameNames *names = NULL;
    FrameLine lines[2] = {};

    CHECK_OK(frame_names_new(&names));
    CHECK_OK(text_set_add(names->texts, text("inlined", 7), &lines[0].function));
    CHECK_OK(text_set_add(names->texts, text("outer", 5), &lines[1].function));
    CHECK_OK(frame_names_add(names, FRAME_NAMED, 0x10, lines, 2));
    CHECK_OK(frame_names_add(names, FRAME_UNNAMED, 0x20, lines, 1));
    CHECK_EQ(names->n_names, 2);
    CHECK_STREQ((const char *)frame_names_function(names, 0).data, "outer");
    CHECK_STREQ((const char *)frame_names_function(names, 1).data, "inlined");
    CHECK_EQ(names->names[1].first, 2);
    CHECK_EQ(names->names[1].start, 0x20);
}

TEST_MAIN()
