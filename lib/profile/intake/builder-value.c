/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>

#include "profile/intake/builder-private.h"

/* Samples with values (perf record -e '{a,b}:S'): each value is a sample of its counter, and its
 * period is how far the counter went. */

enum { VALUES_MAX = 4 << 20 /* as many as a recording may have ids */ };

int builder_value(ProfileBuilder *builder, const PdReadValue *value, uint64_t *ret_period) {
    BuilderValue *row;
    uint32_t number;

    for (size_t probe = 0; (number = hash_index_next(&builder->by_value, value->id, &probe)) > 0;) {
        row = &builder->values[number - 1];
        if (row->id != value->id)
            continue;
        *ret_period = value->value - row->value;
        row->value = value->value;
        return 0;
    }
    *ret_period = value->value;
    if (builder->by_value.n >= VALUES_MAX)
        return 0;
    row = hash_index_append(&builder->by_value, value->id, &builder->values);
    if (!row)
        return -ENOMEM;
    *row = (BuilderValue){.id = value->id, .value = value->value};
    return 0;
}
