/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "label/relabel.h"
#include "test.h"

/* The rules of relabelling, each on a set with the labels of a service on a host. */

static void fill(LabelSet *set) {
    CHECK_OK(label_set_put(set, "unit", "nginx.service"));
    CHECK_OK(label_set_put(set, LABEL_HOST, "web-1"));
    CHECK_OK(label_set_put(set, "slice", "system.slice"));
}

/* The result of the rule, or why it is not valid. */
static int apply(RelabelText text, LabelSet *set) {
    _cleanup_(relabel_rule_freep) RelabelRule *rule = NULL;
    const char *problem;
    int r = relabel_rule_new(&text, &rule, &problem);

    return r < 0 ? r : relabel_apply(rule, set);
}

static const char *problem_of(RelabelText text) {
    _cleanup_(relabel_rule_freep) RelabelRule *rule = NULL;
    const char *problem = NULL;

    return relabel_rule_new(&text, &rule, &problem) == -EINVAL && problem ? problem : "none";
}

TEST(labels_are_sorted_and_unique) {
    _cleanup_(label_set_done) LabelSet set = {};

    fill(&set);
    CHECK_OK(label_set_put(&set, "slice", "user.slice"));
    CHECK_EQ(set.n, 3);
    CHECK_STREQ(set.list[0].name, LABEL_HOST);
    CHECK_STREQ(set.list[1].value, "user.slice");
    CHECK_STREQ(set.list[2].name, "unit");
    CHECK_OK(label_set_put(&set, "unit", ""));
    CHECK(!label_set_get(&set, "unit"));
}

TEST(label_set_is_bounded) {
    _cleanup_(label_set_done) LabelSet set = {};
    char name[16], value[LABEL_VALUE_MAX + 2];

    memset(value, 'v', sizeof(value));
    value[sizeof(value) - 1] = '\0';
    CHECK_EQ(label_set_put(&set, "a", value), -E2BIG);
    CHECK_EQ(label_set_put(&set, "1a", "v"), -EINVAL);
    CHECK_EQ(label_set_put(&set, "", "v"), -EINVAL);
    for (int i = 0; i < LABELS_MAX; i++) {
        snprintf(name, sizeof(name), "l%d", i);
        CHECK_OK(label_set_put(&set, name, "v"));
    }
    CHECK_EQ(label_set_put(&set, "more", "v"), -ENOSPC);
    CHECK_OK(label_set_put(&set, "l3", "other"));
}

TEST(keep_and_drop_match_the_whole_value) {
    _cleanup_(label_set_done) LabelSet set = {};

    fill(&set);
    CHECK_EQ(apply((RelabelText){.action = RELABEL_KEEP, .source_labels = "unit", .regex = "nginx"},
                   &set),
             0);
    CHECK_EQ(apply((RelabelText){.action = RELABEL_KEEP,
                                 .source_labels = "unit",
                                 .regex = "nginx|nginx.*"},
                   &set),
             1);
    CHECK_EQ(apply((RelabelText){.action = RELABEL_DROP,
                                 .source_labels = "unit,slice",
                                 .regex = "nginx.service;system.slice"},
                   &set),
             0);
    CHECK_EQ(
        apply((RelabelText){.action = RELABEL_DROP, .source_labels = "none", .regex = ".+"}, &set),
        1);
}

TEST(replace_expands_groups) {
    _cleanup_(label_set_done) LabelSet set = {};

    fill(&set);
    CHECK_EQ(apply((RelabelText){.action = RELABEL_REPLACE,
                                 .source_labels = "unit slice",
                                 .separator = "@",
                                 .regex = "(.*)\\.service@(.*)\\.slice",
                                 .target_label = "service_name",
                                 .replacement = "${2}-$1-$$5-$7"},
                   &set),
             1);
    CHECK_STREQ(label_set_get(&set, "service_name"), "system-nginx-$5-");
    CHECK_EQ(apply((RelabelText){.action = RELABEL_REPLACE,
                                 .source_labels = "unit",
                                 .regex = "x",
                                 .target_label = "slice",
                                 .replacement = "y"},
                   &set),
             1);
    CHECK_STREQ(label_set_get(&set, "slice"), "system.slice");
    /* No value removes the label. */
    CHECK_EQ(
        apply((RelabelText){.action = RELABEL_REPLACE, .target_label = "slice", .replacement = ""},
              &set),
        1);
    CHECK(!label_set_get(&set, "slice"));
}

TEST(no_rule_removes_the_host) {
    _cleanup_(label_set_done) LabelSet set = {};

    fill(&set);
    CHECK_EQ(apply((RelabelText){.action = RELABEL_LABELDROP, .regex = "s.*|host"}, &set), 1);
    CHECK_EQ(set.n, 2);
    CHECK_EQ(
        apply((RelabelText){.action = RELABEL_REPLACE, .target_label = "host", .replacement = ""},
              &set),
        1);
    CHECK_EQ(apply((RelabelText){.action = RELABEL_LABELDROP}, &set), 1);
    CHECK_EQ(set.n, 1);
    CHECK_STREQ(label_set_get(&set, LABEL_HOST), "web-1");
}

TEST(too_long_replacement_changes_nothing) {
    _cleanup_(label_set_done) LabelSet set = {};
    char value[LABEL_VALUE_MAX + 1];

    fill(&set);
    memset(value, 'v', sizeof(value));
    value[sizeof(value) - 1] = '\0';
    CHECK_OK(label_set_put(&set, "long", value));
    CHECK_EQ(apply((RelabelText){.action = RELABEL_REPLACE,
                                 .source_labels = "long",
                                 .target_label = "unit",
                                 .replacement = "$1$1"},
                   &set),
             -E2BIG);
    CHECK_STREQ(label_set_get(&set, "unit"), "nginx.service");
}

TEST(invalid_rules_are_refused) {
    CHECK_STREQ(problem_of((RelabelText){.action = RELABEL_REPLACE}),
                "replace needs a target label");
    CHECK_STREQ(problem_of((RelabelText){.action = RELABEL_REPLACE, .target_label = "a-b"}),
                "the target label is not a valid name");
    CHECK_STREQ(problem_of((RelabelText){.action = RELABEL_KEEP, .regex = "a"}),
                "keep and drop need source labels");
    CHECK_STREQ(problem_of((RelabelText){.action = RELABEL_KEEP, .source_labels = "a,b-c"}),
                "a source label is not a valid name");
    CHECK_STREQ(
        problem_of((RelabelText){.action = RELABEL_KEEP, .source_labels = "a b c d e f g h i"}),
        "it has too many source labels");
}

TEST(costly_regular_expressions_are_refused) {
    CHECK_STREQ(problem_of((RelabelText){.action = RELABEL_LABELDROP, .regex = "a)(b"}),
                "the regular expression is not valid");
    CHECK_STREQ(problem_of((RelabelText){.action = RELABEL_LABELDROP, .regex = "(a)\\1"}),
                "the regular expression has a back-reference");
    CHECK_STREQ(problem_of((RelabelText){.action = RELABEL_LABELDROP, .regex = "(a{255}){1,255}"}),
                "the regular expression repeats too much");
    CHECK_STREQ(
        problem_of((RelabelText){.action = RELABEL_LABELDROP, .regex = "a{18446744073709551617}"}),
        "the regular expression repeats too much");
}

TEST(nested_repetitions_are_refused) {
    CHECK_STREQ(problem_of((RelabelText){.action = RELABEL_LABELDROP, .regex = "a+++++++++++++"}),
                "the regular expression repeats too much");
    CHECK_STREQ(problem_of((RelabelText){.action = RELABEL_LABELDROP,
                                         .regex = "(((((((((((a+)+)+)+)+)+)+)+)+)+)+)+"}),
                "the regular expression repeats too much");
    CHECK_STREQ(problem_of((RelabelText){.action = RELABEL_LABELDROP,
                                         .regex = "(((((((((((((((((a)))))))))))))))))"}),
                "the regular expression is nested too deeply");
}

TEST(ordinary_repetitions_are_accepted) {
    _cleanup_(label_set_done) LabelSet set = {};

    fill(&set);
    CHECK_EQ(apply((RelabelText){.action = RELABEL_KEEP,
                                 .source_labels = "unit",
                                 .regex = "[a-z]+[.][^]+[:space:]]+|(x+y+z+)+|[0-9a-f]{64}"},
                   &set),
             1);
}

TEST(actions_have_names) {
    RelabelAction action;

    CHECK_OK(relabel_action_from_name("labeldrop", &action));
    CHECK_EQ(action, RELABEL_LABELDROP);
    CHECK_EQ(relabel_action_from_name("hashmod", &action), -EINVAL);
}

TEST_MAIN()
