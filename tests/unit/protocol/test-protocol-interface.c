/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "test.h"

#include <jansson.h>

#include "protocol/interface.h"
#include "protocol/message.h"

/* Texts of interfaces become types, and types refuse what is not of them, naming the place. */

static const char text[] = "# A comment.\n"
                           "interface org.example.test\n"
                           "type Colour (red, green)\n"
                           "type Tree (name: string, below: []Tree) # recursive\n"
                           "method Do(flag: bool, n: int, x: float, s: string, any: object,\n"
                           "  colour: Colour, tree: ?Tree, list: []int, map: [string]int,\n"
                           "  maybe: ?[]string, inline: (a: int, b: ?int)) -> (r: ?int)\n"
                           "method Nothing() -> ()\n"
                           "error Bad(why: string)\n";

#define GOOD                                                                                       \
    "'flag':true,'n':1,'x':2,'s':'','any':{'z':[]},'colour':'red','list':[1,2],'map':{'k':3},"     \
    "'inline':{'a':1}"

/* JSON with ' for ". */
static json_t *json_of(const char *quoted) {
    char *json = strdup(quoted);
    json_t *object;

    if (!json)
        return NULL;
    for (char *c = json; *c; c++)
        *c = *c == '\'' ? '"' : *c;
    object = json_loads(json, 0, NULL);
    if (!object)
        printf("# no JSON: %s\n", quoted);
    free(json);
    return object;
}

static int check(const Interface *interface, InterfacePart part, const char *member,
                 const char *quoted, InterfaceStrictness strictness, char *ret_field) {
    _cleanup_json_ json_t *object = json_of(quoted);

    ret_field[0] = '\0';
    return object ? interface_check(interface, part, member, object, strictness, ret_field) : -EDOM;
}

TEST(members_are_found_in_their_order) {
    _cleanup_(interface_freep) Interface *interface = NULL;

    CHECK_OK(interface_new(text, &interface, NULL));
    CHECK_STREQ(interface_name(interface), "org.example.test");
    CHECK_STREQ(interface_method(interface, 0), "Do");
    CHECK_STREQ(interface_method(interface, 1), "Nothing");
    CHECK(!interface_method(interface, 2));
    CHECK(interface_text(interface) == text);
}

TEST(parameters_are_checked_against_their_types_and_the_wrong_one_is_named) {
    /* clang-format off */
    static const struct { const char *json, *field; } rows[] = {
        { "{" GOOD "}",                                                       NULL                  },
        { "{" GOOD ",'tree':null,'maybe':null}",                              NULL                  },
        { "{" GOOD ",'tree':{'name':'a','below':[{'name':'b','below':[]}]}}", NULL                  },
        { "{" GOOD ",'maybe':['a']}",                                         NULL                  },
        { "{}",                                                               "flag"                },
        { "{" GOOD ",'zz':1}",                                                "zz"                  },
        { "{" GOOD ",'\\u001b[2J\\\\':1}",                                    "\\x1b[2J\\x5c"       },
        { "{" GOOD ",'maybe':'a'}",                                           "maybe"               },
        { "{" GOOD ",'maybe':['a',1]}",                                       "maybe[1]"            },
        { "{" GOOD ",'tree':{'name':'a'}}",                                   "tree.below"          },
        { "{" GOOD ",'tree':{'name':'a','below':[{'name':1,'below':[]}]}}",   "tree.below[0].name"  },
        { "{'flag':1,'n':1,'x':2,'s':'','any':{},'colour':'red','list':[],'map':{},'inline':{'a':1}}",          "flag"     },
        { "{'flag':true,'n':1.0,'x':2,'s':'','any':{},'colour':'red','list':[],'map':{},'inline':{'a':1}}",     "n"        },
        { "{'flag':true,'n':1,'x':'2','s':'','any':{},'colour':'red','list':[],'map':{},'inline':{'a':1}}",     "x"        },
        { "{'flag':true,'n':1,'x':2,'s':null,'any':{},'colour':'red','list':[],'map':{},'inline':{'a':1}}",     "s"        },
        { "{'flag':true,'n':1,'x':2,'s':'','any':[],'colour':'red','list':[],'map':{},'inline':{'a':1}}",       "any"      },
        { "{'flag':true,'n':1,'x':2,'s':'','any':{},'colour':'blue','list':[],'map':{},'inline':{'a':1}}",      "colour"   },
        { "{'flag':true,'n':1,'x':2,'s':'','any':{},'colour':1,'list':[],'map':{},'inline':{'a':1}}",           "colour"   },
        { "{'flag':true,'n':1,'x':2,'s':'','any':{},'colour':'red','list':{},'map':{},'inline':{'a':1}}",       "list"     },
        { "{'flag':true,'n':1,'x':2,'s':'','any':{},'colour':'red','list':[],'map':{'k':'v'},'inline':{'a':1}}", "map[k]"  },
        { "{'flag':true,'n':1,'x':2,'s':'','any':{},'colour':'red','list':[],'map':[],'inline':{'a':1}}",       "map"      },
        { "{'flag':true,'n':1,'x':2,'s':'','any':{},'colour':'red','list':[],'map':{},'inline':{'b':1}}",       "inline.a" },
        { "{'flag':true,'n':1,'x':2,'s':'','any':{},'colour':'red','list':[],'map':{},'inline':{'a':1,'c':1}}", "inline.c" },
        { "{'flag':true,'n':1,'x':2,'s':'','any':{},'colour':'red','list':[],'map':{}}",                        "inline"   },
    };
    /* clang-format on */
    _cleanup_(interface_freep) Interface *interface = NULL;
    char field[INTERFACE_FIELD_SIZE];

    CHECK_OK(interface_new(text, &interface, NULL));
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        int r = check(interface, INTERFACE_CALL, "Do", rows[i].json, INTERFACE_STRICT, field);

        if (r != (rows[i].field ? -EINVAL : 0))
            printf("# %s\n", rows[i].json);
        CHECK_EQ(r, rows[i].field ? -EINVAL : 0);
        CHECK_STREQ(field, rows[i].field ? rows[i].field : "");
    }
}

TEST(a_long_field_name_is_truncated_in_the_error) {
    _cleanup_(interface_freep) Interface *interface = NULL;
    _cleanup_json_ json_t *object = json_object();
    char name[4096], field[INTERFACE_FIELD_SIZE];

    memset(name, '\x1b', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    CHECK_OK(interface_new(text, &interface, NULL));
    CHECK_OK(json_object_set_new(object, name, json_true()));
    CHECK_EQ(interface_check(interface, INTERFACE_CALL, "Nothing", object, INTERFACE_STRICT, field),
             -EINVAL);
    CHECK_EQ(strlen(field), INTERFACE_FIELD_SIZE - 1);
}

TEST(fields_of_a_newer_service_are_ignored_if_asked_for) {
    _cleanup_(interface_freep) Interface *interface = NULL;
    char field[INTERFACE_FIELD_SIZE];

    CHECK_OK(interface_new(text, &interface, NULL));
    CHECK_EQ(check(interface, INTERFACE_REPLY, "Do", "{'r':1,'new':1}", INTERFACE_STRICT, field),
             -EINVAL);
    CHECK_EQ(
        check(interface, INTERFACE_REPLY, "Do", "{'r':1,'new':1}", INTERFACE_ADDED_FIELDS, field),
        0);
    CHECK_EQ(
        check(interface, INTERFACE_REPLY, "Do", "{'r':'','new':1}", INTERFACE_ADDED_FIELDS, field),
        -EINVAL);
    CHECK_EQ(check(interface, INTERFACE_ERROR, "Bad", "{'why':''}", INTERFACE_STRICT, field), 0);
    CHECK_EQ(check(interface, INTERFACE_ERROR, "Bad", "{}", INTERFACE_STRICT, field), -EINVAL);
    CHECK_EQ(check(interface, INTERFACE_ERROR, "Do", "{}", INTERFACE_STRICT, field), -ENOENT);
    CHECK_EQ(check(interface, INTERFACE_CALL, "Bad", "{}", INTERFACE_STRICT, field), -ENOENT);
    CHECK_EQ(check(interface, INTERFACE_CALL, "do", "{}", INTERFACE_STRICT, field), -ENOENT);
}

TEST(a_malformed_interface_is_refused_with_its_line) {
    /* clang-format off */
    static const struct { const char *text; unsigned line; } rows[] = {
        { "",                                                         1 },
        { "interface",                                                1 },
        { "interface a.b\nmethod X()",                                2 },
        { "interface a.b\nmethod X() -> (",                           2 },
        { "interface a.b\nmethod X() -> ()\nmethod X() -> ()",        3 },
        { "interface a.b\ntype X (a: int, a: int)",                   2 },
        { "interface a.b\ntype X (a: int, b)",                        2 },
        { "interface a.b\ntype X (a, b: int)",                        2 },
        { "interface a.b\ntype X (a: ??int)",                         2 },
        { "interface a.b\ntype X (a: )",                              2 },
        { "interface a.b\n\n\nerror X (a: Unknown)",                  4 },
        { "interface a.b\nmethod X() -> (a)",                         2 },
        { "interface a.b\nfunction X()",                              2 },
        { "interface a.b\nerror X (a: [][][][][][][][][][][][][][][][][][]int)", 2 },
    };
    /* clang-format on */

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        Interface *interface = NULL;
        unsigned line = 0;
        int r = interface_new(rows[i].text, &interface, &line);

        if (r != -EBADMSG)
            printf("# %s\n", rows[i].text);
        CHECK_EQ(r, -EBADMSG);
        CHECK_EQ(line, rows[i].line);
        CHECK(!interface);
    }
}

TEST(the_interfaces_of_profd_are_parsed) {
    _cleanup_(interface_freep) Interface *control = NULL, *service = NULL;

    CHECK_OK(interface_new(interface_text_control, &control, NULL));
    CHECK_OK(interface_new(interface_text_service, &service, NULL));
    CHECK_STREQ(interface_name(control), "io.profd.Control");
    CHECK_STREQ(interface_name(service), "org.varlink.service");
    CHECK_STREQ(interface_method(service, 1), "GetInterfaceDescription");
}

TEST_MAIN()
