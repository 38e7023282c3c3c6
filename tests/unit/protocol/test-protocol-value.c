/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "protocol/value.h"

#include "protocol/message.h"
#include "test.h"

/* A part that could not be made makes the whole NULL, and nothing is leaked on the way. */

TEST(parts_are_added_in_order) {
    _cleanup_json_ json_t *object = json_object(), *array = json_array();

    value_append(&array, json_integer(1));
    value_append(&array, json_integer(2));
    value_set(&object, "list", json_incref(array));
    CHECK_EQ(json_array_size(json_object_get(object, "list")), 2U);
}

TEST(a_text_that_is_not_utf8_makes_the_whole_value_null) {
    json_t *object = json_object(), *array = json_array();

    value_set(&object, "before", json_string("a"));
    value_set(&object, "name", json_string("\xff"));
    CHECK(!object);
    value_append(&array, json_string("\xff"));
    CHECK(!array);
}

TEST(a_failed_value_stays_null) {
    json_t *object = json_object(), *array = json_array();

    value_set(&object, "\xff", json_integer(1));
    value_set(&object, "after", json_integer(2));
    CHECK(!object);
    value_append(&array, NULL);
    value_append(&array, json_integer(2));
    CHECK(!array);
}

TEST_MAIN()
