/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "test.h"

#include "protocol/message.h"

/* The bytes that are a message, and the name by which all others are refused. */

static int parse(const char *text) {
    _cleanup_json_ json_t *object = NULL;

    return message_parse(text, strlen(text), &object);
}

static int parse_call(const char *text) {
    _cleanup_json_ json_t *object = NULL;
    MessageCall call;
    int r = message_parse(text, strlen(text), &object);

    return r == 0 ? message_to_call(object, &call) : r;
}

/* {"a":[[[…]]]} that nests `depth` deep in all. */
static char *make_nested(size_t depth) {
    size_t n = depth - 1;
    char *text = calloc(1, 2 * n + 16), *at = text;

    if (!text)
        return NULL;
    at += sprintf(at, "{\"a\":");
    memset(at, '[', n);
    memset(at + n, ']', n);
    strcpy(at + 2 * n, "}");
    return text;
}

static int parse_nested(size_t depth) {
    _cleanup_free_ char *text = make_nested(depth);

    return text ? parse(text) : -ENOMEM;
}

/* A message of exactly n bytes. */
static int parse_sized(size_t n) {
    _cleanup_free_ char *text = malloc(n + 1);

    if (!text)
        return -ENOMEM;
    memset(text, 'x', n);
    memcpy(text, "{\"a\":\"", 6);
    strcpy(text + n - 2, "\"}");
    return parse(text);
}

static int parse_values(size_t n) {
    _cleanup_free_ char *text = calloc(1, 2 * n + 16);

    if (!text)
        return -ENOMEM;
    strcpy(text, "{\"a\":[1");
    for (size_t i = 1, at = 7; i < n; i++, at += 2)
        memcpy(text + at, ",1", 2);
    strcat(text, "]}");
    return parse(text);
}

TEST(every_malformed_message_is_refused_with_its_fault) {
    /* clang-format off */
    static const struct { const char *text; int fault; } rows[] = {
        { "{}",                              0                 },
        { " { \"a\" : [ 1 , -2.5e3 , true ] } ", 0              },
        { "{\"\\\"[[[\":\"]\\\\\"}",         0                 },
        { "",                                MESSAGE_SYNTAX    },
        { "{",                               MESSAGE_SYNTAX    },
        { "{}{}",                            MESSAGE_SYNTAX    },
        { "{} x",                            MESSAGE_SYNTAX    },
        { "{\"a\":}",                        MESSAGE_SYNTAX    },
        { "{'a':1}",                         MESSAGE_SYNTAX    },
        { "{\"a\":01}",                      MESSAGE_SYNTAX    },
        { "{\"a\":NaN}",                     MESSAGE_SYNTAX    },
        { "{\"a\":\"\\ud800\"}",             MESSAGE_SYNTAX    },
        { "{\"a\":\"\n\"}",                  MESSAGE_SYNTAX    },
        { "{\"a\":\"\xff\"}",                MESSAGE_UTF8      },
        { "{\"a\":\"\xc0\x80\"}",            MESSAGE_UTF8      },
        { "{\"\xed\xa0\x80\":1}",            MESSAGE_UTF8      },
        { "{\"a\":1,\"a\":1}",               MESSAGE_DUPLICATE },
        { "{\"a\":{\"b\":1,\"b\":2}}",       MESSAGE_DUPLICATE },
        { "{\"a\":1,\"\\u0061\":1}",         MESSAGE_DUPLICATE },
        { "{\"a\":\"\\u0000\"}",             MESSAGE_NUL       },
        { "{\"\\u0000\":1}",                 MESSAGE_NUL       },
        { "{\"a\":9223372036854775808}",     MESSAGE_NUMBER    },
        { "{\"a\":1e999}",                   MESSAGE_NUMBER    },
        { "[]",                              MESSAGE_OBJECT    },
    };
    /* clang-format on */

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        int fault = parse(rows[i].text);

        if (fault != rows[i].fault)
            printf("# %s\n", rows[i].text);
        CHECK_EQ(fault, rows[i].fault);
    }
    CHECK_STREQ(message_fault_name(MESSAGE_UTF8), "utf8");
    for (int i = 0; i < MESSAGE_FAULTS; i++)
        CHECK(message_fault_name((MessageFault)i) != NULL);
}

TEST(nesting_ends_at_32) {
    CHECK_EQ(parse_nested(MESSAGE_DEPTH_MAX), 0);
    CHECK_EQ(parse_nested(MESSAGE_DEPTH_MAX + 1), MESSAGE_NESTING);
    CHECK_EQ(parse_nested(10000), MESSAGE_NESTING);
    CHECK_EQ(parse_nested(MESSAGE_BYTES_MAX / 2 - 8), MESSAGE_NESTING);
}

TEST(a_message_may_have_one_mebibyte_and_no_more) {
    CHECK_EQ(parse_sized(MESSAGE_BYTES_MAX), 0);
    CHECK_EQ(parse_sized(MESSAGE_BYTES_MAX + 1), MESSAGE_SIZE);
}

TEST(small_values_that_cost_much_memory_are_limited) {
    CHECK_EQ(parse_values(16000), 0);
    CHECK_EQ(parse_values(MESSAGE_VALUES_MAX + 1), MESSAGE_VALUES);
}

TEST(a_call_may_have_only_the_fields_of_a_call) {
    /* clang-format off */
    static const struct { const char *text; int fault; } rows[] = {
        { "{\"method\":\"a.B\"}",                                    0             },
        { "{\"method\":\"a.B\",\"parameters\":{}}",                  0             },
        { "{\"method\":\"a.B\",\"parameters\":null}",                0             },
        { "{\"method\":\"a.B\",\"more\":true}",                      0             },
        { "{\"method\":\"a.B\",\"more\":false,\"oneway\":true}",     0             },
        { "{}",                                                      MESSAGE_FIELD },
        { "{\"method\":1}",                                          MESSAGE_FIELD },
        { "{\"method\":\"a.B\",\"parameters\":[]}",                  MESSAGE_FIELD },
        { "{\"method\":\"a.B\",\"parameters\":1}",                   MESSAGE_FIELD },
        { "{\"method\":\"a.B\",\"more\":1}",                         MESSAGE_FIELD },
        { "{\"method\":\"a.B\",\"upgrade\":\"true\"}",               MESSAGE_FIELD },
        { "{\"method\":\"a.B\",\"oneway\":null}",                    MESSAGE_FIELD },
        { "{\"method\":\"a.B\",\"Method\":\"a.B\"}",                 MESSAGE_FIELD },
        { "{\"method\":\"a.B\",\"more\":true,\"oneway\":true}",      MESSAGE_FLAGS },
        { "{\"method\":\"a.B\",\"more\":true,\"upgrade\":true}",     MESSAGE_FLAGS },
        { "{\"method\":\"a.B\",\"oneway\":true,\"upgrade\":true}",   MESSAGE_FLAGS },
    };
    /* clang-format on */

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        int fault = parse_call(rows[i].text);

        if (fault != rows[i].fault)
            printf("# %s\n", rows[i].text);
        CHECK_EQ(fault, rows[i].fault);
    }
}

TEST(reply_and_error_are_distinguished) {
    _cleanup_json_ json_t *object =
        json_pack("{s:{s:i}, s:b}", "parameters", "a", 1, "continues", 1);
    _cleanup_json_ json_t *error = json_pack("{s:s}", "error", "a.B");
    _cleanup_json_ json_t *both = json_pack("{s:s, s:b}", "error", "a.B", "continues", 1);
    _cleanup_json_ json_t *unknown = json_pack("{s:i}", "method", 1);
    MessageReply reply;

    CHECK_EQ(message_to_reply(object, &reply), 0);
    CHECK(reply.continues && !reply.error);
    CHECK_EQ(json_integer_value(json_object_get(reply.parameters, "a")), 1);
    CHECK_EQ(message_to_reply(error, &reply), 0);
    CHECK_STREQ(reply.error, "a.B");
    CHECK(!reply.parameters);
    CHECK_EQ(message_to_reply(both, &reply), MESSAGE_FLAGS);
    CHECK_EQ(message_to_reply(unknown, &reply), MESSAGE_FIELD);
}

TEST(a_written_value_is_read_back_unchanged) {
    _cleanup_json_ json_t *object =
        json_pack("{s:s, s:[i, f, n, b]}", "a", "\xc3\xa4\"\\\n", "b", 1, 0.5, 1);
    _cleanup_json_ json_t *again = NULL;
    _cleanup_(buffer_done) Buffer out = {};

    CHECK_OK(message_append(&out, object));
    CHECK_EQ(out.data[out.size - 1], 0);
    CHECK_EQ(strlen((const char *)out.data), out.size - 1);
    CHECK_EQ(message_parse(out.data, out.size - 1, &again), 0);
    CHECK(json_equal(object, again));
}

TEST_MAIN()
