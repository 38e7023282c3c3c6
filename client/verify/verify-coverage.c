/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/verify/verify-state.h"

#include "client/remote/coverage-text.h"
#include "perfdata/feature/environment.h"

/* The feature lists the gaps that the recorder knows of. Only profd writes it. */

static void verify_coverage_add_gap(const PdGap *gap, Findings *findings) {
    _cleanup_(buffer_done) Buffer text = {};

    coverage_describe_gap(&text, gap);
    buffer_zero(&text, 1);
    findings_add(findings, pd_gap_counts(gap) ? SEVERITY_WARNING : SEVERITY_NOTE, "coverage", NULL,
                 1, "not recorded %s", buffer_error(&text) ? "?" : (const char *)text.data);
}

/* An invalid feature is reported with the other features. */
int verify_coverage(PdReader *reader, Findings *findings) {
    _cleanup_(pd_environment_freep) PdEnvironment *env = NULL;
    int r = pd_environment_new(&env);

    if (r == 0)
        r = pd_environment_read_feature(env, reader, PD_FEATURE_VERSION);
    if (r == 0)
        r = pd_environment_read_feature(env, reader, PD_FEATURE_PROFD_COVERAGE);
    if (r < 0)
        return r;
    for (size_t i = 0; env->has[PD_FEATURE_PROFD_COVERAGE] && i < env->coverage.n_gaps; i++)
        verify_coverage_add_gap(&env->coverage.gaps[i], findings);
    if (pd_environment_is_of_profd(env) && !env->has[PD_FEATURE_PROFD_COVERAGE])
        findings_add(findings, SEVERITY_NOTE, "coverage", NULL, 1,
                     "it does not contain which times were recorded");
    return 0;
}
