/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdlib.h>

#include "fuzz.h"
#include "send/send-state.h"

/* The state file of a destination: any text is refused with a reason, or is a state whose lists are
 * in order and whose own text is read as the same. */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    _cleanup_free_ SendState *state = calloc(1, sizeof(*state)), *back = calloc(1, sizeof(*back));
    _cleanup_(buffer_done) Buffer text = {}, again = {};
    const char *problem = NULL;

    if (!state || !back)
        return 0;
    if (send_state_parse((Bytes){.data = data, .size = size}, state, &problem) < 0) {
        if (!problem || problem[0] == '\0')
            abort();
        return 0;
    }
    if (!range_list_is_valid(&state->unsent) || state->n_partials > STATE_PARTIALS_MAX)
        abort();
    if (send_state_print(state, &text) < 0 ||
        send_state_parse(buffer_bytes(&text), back, &problem) < 0 ||
        send_state_print(back, &again) < 0)
        abort();
    if (text.size != again.size || memcmp(text.data, again.data, text.size) != 0)
        abort();
    return 0;
}
