/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/record/sample-chain.h"

/*
 * In a sample the call chain lies before the registers and the stack of user code: what is in
 * front of the chain, between the two, and behind the stack is copied as it is.
 */

enum { RECORD_BYTES_MAX = UINT16_MAX & ~7, RECORD_SIZE_AT = 6 };

uint64_t pd_chain_before_user(const PdCallchain *chain) {
    for (uint64_t i = 0; i < chain->n; i++)
        if (pd_u64_at(chain, i) == PD_CONTEXT_USER)
            return i;
    return chain->n;
}

void pd_sample_append_unwound(Buffer *out, const PdRecord *record, const PdSample *sample,
                              const uint64_t *addresses, size_t n) {
    const uint64_t n_all = sample->callchain.n;
    const uint64_t n_before = n > 0 ? pd_chain_before_user(&sample->callchain) : n_all;
    const size_t chain_end = sample->chain_at + sizeof(uint64_t) * (1 + (size_t)n_all);
    const size_t start = out->size;
    const size_t kept = record->size - (sample->user_end - sample->user_at) -
                        sizeof(uint64_t) * (size_t)(n_all - n_before);
    const size_t room = (RECORD_BYTES_MAX - kept) / sizeof(uint64_t);

    n = room > 0 ? MIN(n, room - 1) : 0;
    buffer_append(out, record->data, sample->chain_at);
    buffer_u64(out, n_before + (n > 0 ? n + 1 : 0), record->swap);
    buffer_append(out, record->data + sample->chain_at + sizeof(uint64_t),
                  sizeof(uint64_t) * (size_t)n_before);
    if (n > 0)
        buffer_u64(out, PD_CONTEXT_USER, record->swap);
    for (size_t i = 0; i < n; i++)
        buffer_u64(out, addresses[i], record->swap);
    buffer_append(out, record->data + chain_end, sample->user_at - chain_end);
    buffer_append(out, record->data + sample->user_end, record->size - sample->user_end);
    if (buffer_error(out) == 0)
        store_u16(out->data + start + RECORD_SIZE_AT, (uint16_t)(out->size - start), record->swap);
}
