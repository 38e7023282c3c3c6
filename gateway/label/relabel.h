/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* One rule that changes or refuses a set of labels, as relabel_config of Prometheus does. */

#include "label/label-set.h"

enum {
    RELABEL_SOURCES_MAX = 8,
    RELABEL_REGEX_MAX = 512,
    RELABEL_DEPTH_MAX = 16,
    RELABEL_LEVELS_MAX = 3,  /* of repetitions inside of others */
    RELABEL_COST_MAX = 2000, /* nodes of an expression, with repetitions written out */
};

typedef enum RelabelAction {
    RELABEL_REPLACE,
    RELABEL_KEEP,
    RELABEL_DROP,
    RELABEL_LABELDROP,
} RelabelAction;

/* NULL members have the defaults of Prometheus: separator ";", regex "(.*)", replacement "$1". */
typedef struct RelabelText {
    RelabelAction action;
    const char *source_labels; /* names, separated by commas or spaces */
    const char *separator, *regex, *target_label, *replacement;
} RelabelText;

typedef struct RelabelRule RelabelRule;

/* -EINVAL with a sentence part in *ret_problem, which is static. */
int relabel_rule_new(const RelabelText *text, RelabelRule **ret, const char **ret_problem);
RelabelRule *relabel_rule_free(RelabelRule *rule);
DEFINE_CLEANUP(RelabelRule *, relabel_rule_free);

/* "keep", "drop", "replace", "labeldrop"; -EINVAL for other words. */
int relabel_action_from_name(const char *name, RelabelAction *ret);

/* 1: the series stays, with its labels changed; 0: the rule drops it; else as label_set_put(), and
 * the set is unchanged. */
int relabel_apply(const RelabelRule *rule, LabelSet *set);
