/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "label/relabel.h"

/*
 * A rule of any expression is made and applied to labels with any value. Input: a byte for the
 * action, the expression, and after a newline the value of the label that it looks at.
 */

enum { TEXT_MAX = 2048 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    _cleanup_(relabel_rule_freep) RelabelRule *rule = NULL;
    char text[TEXT_MAX + 1] = {}, *value;
    LabelSet set = {};
    RelabelText rows = {.source_labels = "unit, comm", .regex = text, .target_label = "host"};
    const char *problem = NULL, *host;

    if (size < 1)
        return 0;
    rows.action = (RelabelAction)(data[0] & 3);
    memcpy(text, data + 1, MIN(size - 1, (size_t)TEXT_MAX));
    value = strchr(text, '\n');
    if (value)
        *value++ = '\0';
    if (label_set_put(&set, LABEL_HOST, "web-1") < 0)
        abort();
    (void)label_set_put(&set, "unit", value ? value : "shop.service");
    (void)label_set_put(&set, "comm", "shop");
    if (relabel_rule_new(&rows, &rule, &problem) < 0) {
        if (!problem || problem[0] == '\0')
            abort();
    } else
        (void)relabel_apply(rule, &set);
    host = label_set_get(&set, LABEL_HOST);
    if (!host || host[0] == '\0')
        abort();
    label_set_done(&set);
    return 0;
}
