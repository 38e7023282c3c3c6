/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture/sweep/sweep-loss.h"

#include "util/clock.h"

/*
 * Losses of all rings. After a loss of side-band nobody knows which processes inherited events, so
 * every process that is new from then on counts as one that did.
 */

int sampler_losses(Sampler *sampler, SamplerLoss fn, void *userdata) {
    uint64_t before = sampler->side_band.counts.lost;
    int r = loss_report(&sampler->side_band, fn, userdata);

    /* The lost records may include forks. */
    if (sampler->side_band.counts.lost > before)
        sampler->unsure_before_ns = clock_ns(CLOCK_BOOTTIME);
    if (r == 0)
        r = loss_report(&sampler->data, fn, userdata);
    for (SamplerSession *s = sampler->sessions; r == 0 && s; s = s->next)
        r = loss_report(&s->rings, fn, userdata);
    return r;
}
