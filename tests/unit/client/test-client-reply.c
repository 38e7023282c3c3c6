/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/remote/reply.h"

#include "test.h"
#include "util/text.h"

static json_t *parsed(const char *text) {
    return json_loads(text, 0, NULL);
}

TEST(missing_members_and_those_of_another_type_read_as_empty) {
    json_t *object = parsed("{\"text\":\"a\",\"n\":-5,\"real\":2.5,\"null\":null,\"list\":[]}");

    CHECK(object);
    CHECK_STREQ(reply_string(object, "text"), "a");
    CHECK_STREQ(reply_string(object, "n"), "");
    CHECK_STREQ(reply_string(object, "none"), "");
    CHECK_EQ(reply_count(object, "n"), 0U);
    CHECK_EQ(reply_count(object, "real"), 2U);
    CHECK_EQ(reply_count(object, "text"), 0U);
    CHECK(!reply_bool(object, "text"));
    CHECK(!reply_has(object, "null"));
    CHECK(reply_has(object, "list"));
    CHECK(reply_member(object, "list"));
    CHECK(!reply_member(object, "text"));
    CHECK(!reply_member(NULL, "text"));
    json_decref(object);
}

TEST(numbers_beyond_an_integer_are_not_counts) {
    json_t *object = parsed("{\"huge\":1e300,\"less\":-1e300}");

    CHECK_EQ(reply_count(object, "huge"), 0U);
    CHECK_EQ(reply_count(object, "less"), 0U);
    json_decref(object);
}

TEST(every_string_and_key_is_escaped_once) {
    json_t *hostile = parsed("{\"a\\u001b\":[\"\\u001b[2J\",{\"b\":\"\\\\xff\"}],\"n\":1}");
    json_t *shown = reply_shown(hostile), *list = json_object_get(shown, "a\\x1b");

    CHECK(shown);
    CHECK_STREQ(json_string_value(json_array_get(list, 0)), "\\x1b[2J");
    CHECK_STREQ(reply_string(json_array_get(list, 1), "b"), "\\xff");
    CHECK_EQ(reply_count(shown, "n"), 1U);
    json_decref(shown);
    json_decref(hostile);
}

TEST(json_is_one_line_or_indented_with_unchanged_numbers) {
    json_t *value = parsed("{\"a\":[0.1,12345678901234]}");
    Context c = {.json = JSON_SHORT};

    CHECK_EQ(reply_print(&c, value), STATUS_OK);
    c.json = JSON_PRETTY;
    CHECK_EQ(reply_print(&c, value), STATUS_OK);
    text_putc(&c.out.buffer, '\0');
    CHECK_STREQ((const char *)c.out.buffer.data, "{\"a\":[0.1,12345678901234]}\n"
                                                 "{\n  \"a\": [\n    0.1,\n"
                                                 "    12345678901234\n  ]\n}\n");
    buffer_done(&c.out.buffer);
    json_decref(value);
}

TEST_MAIN()
