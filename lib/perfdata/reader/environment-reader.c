/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/feature/environment.h"

#include <errno.h>
#include <stdio.h>

#include "perfdata/reader/reader.h"

/*
 * Reads the environment of a recording: every feature of the reader in ascending order, so that
 * NRCPUS is there before CPU_TOPOLOGY needs it.
 */

void pd_feature_damage(const PdReader *reader, unsigned bit, int error, PdDamage *ret) {
    const char *name = pd_feature_name(bit), *what = "does not hold what it announces";
    char number[16];

    (void)snprintf(number, sizeof(number), "%u", bit);
    if (error == -EFBIG)
        what = "is larger than the limit";
    *ret = (PdDamage){.offset = pd_reader_feature_offset(reader, bit)};
    (void)snprintf(ret->text, sizeof(ret->text), "the feature %s %s", name ? name : number, what);
}

int pd_environment_read_feature(PdEnvironment *env, PdReader *reader, unsigned bit) {
    Bytes body;
    int r = pd_reader_feature(reader, bit, &body);

    if (r == 0)
        r = pd_environment_read(env, bit, body, pd_reader_header(reader)->swap);
    return r == -ENOENT || r == -EBADMSG || r == -EFBIG ? 0 : r;
}

int pd_environment_from_reader(PdEnvironment *env, PdReader *reader, unsigned *ret_damaged,
                               PdDamage *ret_why) {
    bool swap = pd_reader_header(reader)->swap;
    unsigned damaged = 0;
    PdDamage why = {};

    for (unsigned bit = 1; bit < PD_FEATURE_BITS; bit++) {
        Bytes body = {};
        int r;

        if (!pd_reader_has_feature(reader, bit))
            continue;
        r = pd_reader_feature(reader, bit, &body);
        if (r == 0)
            r = pd_environment_read(env, bit, body, swap);
        if (r == 0 || r == -ENOENT)
            continue;
        if (r != -EBADMSG && r != -EFBIG)
            return r;
        if (damaged++ == 0)
            pd_feature_damage(reader, bit, r, &why);
    }
    *ret_damaged = damaged;
    if (damaged > 0)
        *ret_why = why;
    return 0;
}
