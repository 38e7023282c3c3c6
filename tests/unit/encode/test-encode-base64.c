/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "encode/base64.h"

#include "test.h"
#include "util/text.h"

/* The examples of RFC 4648, and all bits. */

static bool gives(Bytes bytes, const char *text) {
    Buffer b = {};
    bool same;

    base64_encode(&b, bytes);
    same = bytes_equal_str(buffer_bytes(&b), text);
    buffer_done(&b);
    return same;
}

TEST(examples_of_the_rfc_are_right) {
    static const char *const examples[] = {"",         "Zg==",     "Zm8=",    "Zm9v",
                                           "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"};

    for (size_t i = 0; i < 7; i++)
        CHECK(gives((Bytes){.data = (const uint8_t *)"foobar", .size = i}, examples[i]));
}

TEST(the_last_letters_stand_for_set_bits) {
    CHECK(gives((Bytes){.data = (const uint8_t *)"\xff\xef\xbe\xfb", .size = 4}, "/++++w=="));
}

TEST_MAIN()
