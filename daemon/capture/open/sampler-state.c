/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture/open/sampler-state.h"

/*
 * Questions that several rooms ask about the sampler and its sessions, answered from their state
 * alone.
 */

bool sampler_follows_processes(const Sampler *sampler) {
    return sampler->side_band.ops->inherits;
}

uint64_t sampler_descriptors(const Sampler *sampler) {
    uint64_t n = ring_set_counters(&sampler->side_band) + ring_set_counters(&sampler->data);

    for (const SamplerSession *s = sampler->sessions; s; s = s->next)
        n += ring_set_counters(&s->rings);
    return n;
}

bool session_wants_cpu(const SamplerSession *session, unsigned cpu) {
    if (session->wanted.n > 0 && !cpu_list_has(&session->wanted, cpu))
        return false;
    for (size_t e = 0; e < session->plan.n; e++)
        if (session->plan.events[e].cpus.n == 0 || cpu_list_has(&session->plan.events[e].cpus, cpu))
            return true;
    return false;
}

bool session_lacks_cpu(const SamplerSession *session, bool online_only) {
    const CpuList *online = &session->sampler->online;

    for (size_t i = 0; i < online->n; i++)
        if (session_wants_cpu(session, online->cpus[i]) &&
            !ring_set_find(&session->rings, online->cpus[i]))
            return true;
    for (size_t i = 0; !online_only && i < session->wanted.n; i++)
        if (session_wants_cpu(session, session->wanted.cpus[i]) &&
            !ring_set_find(&session->rings, session->wanted.cpus[i]))
            return true;
    return false;
}

bool session_lacks_group(const SamplerSession *session) {
    return session->group.is_followed && session->group.id == 0;
}

void session_adopt_group(SamplerSession *session, uint64_t id) {
    SessionGroup *group = &session->group;

    if (!group->is_followed || id == 0)
        return;
    group->id = id;
    group->gap_from_ns = 0;
}
