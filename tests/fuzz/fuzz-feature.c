/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fuzz.h"
#include "perfdata/feature/environment.h"
#include "util/macro.h"

/*
 * The body of a header feature: decoded, printed, described, written in both byte orders, and
 * decoded again from what was written. Input: the bit, the byte order, the body.
 */

/* With four CPUs, without which the places in CPU_TOPOLOGY could not be counted. */
static int new_environment(PdEnvironment **ret) {
    static const uint32_t cpus[] = {4, 4};
    int r = pd_environment_new(ret);

    return r < 0 ? r
                 : pd_environment_read(*ret, PD_FEATURE_NRCPUS,
                                       (Bytes){.data = (const uint8_t *)cpus, .size = sizeof(cpus)},
                                       false);
}

static void write_and_read_back(const PdEnvironment *environment, unsigned bit, bool swap) {
    _cleanup_(pd_environment_freep) PdEnvironment *again = NULL;
    _cleanup_(buffer_done) Buffer body = {};

    if (pd_environment_write(environment, bit, &body, swap) < 0 || new_environment(&again) < 0)
        return;
    if (pd_environment_read(again, bit, buffer_bytes(&body), swap) < 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    _cleanup_(pd_environment_freep) PdEnvironment *environment = NULL;
    _cleanup_(buffer_done) Buffer out = {};
    Fields fields = fields_to(&out, FIELDS_JSON);
    int r;

    if (size < 2 || new_environment(&environment) < 0)
        return 0;
    r = pd_environment_read(environment, data[0], (Bytes){.data = data + 2, .size = size - 2},
                            data[1] & 1);
    pd_environment_print(environment, &out);
    pd_environment_describe(environment, &fields);
    if (r == 0) {
        write_and_read_back(environment, data[0], false);
        write_and_read_back(environment, data[0], true);
    }
    return 0;
}
