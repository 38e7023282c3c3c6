/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "listen/listen-query.h"
#include "listen/listen-text.h"
#include "util/clock.h"

/*
 * All that the listener parses itself, each with the same text: the query of a profile, a list of
 * addresses, the Host and the Authorization of a request, the address of the configuration.
 */

enum { TEXT_MAX = 4096 };

#define NOW_NS (1800000000 * NS_PER_SECOND)

static void fuzz_query(const char *text) {
    const char *problem = NULL;
    ListenQuery query;
    int r = listen_query_parse(text, NOW_NS, &query, &problem);

    if (r < 0) {
        if (r != -EINVAL || !problem || !*problem)
            abort();
        return;
    }
    if (query.since_ns >= query.until_ns || query.until_ns > NOW_NS ||
        query.until_ns - query.since_ns > LISTEN_SECONDS_MAX * NS_PER_SECOND)
        abort();
    if (strlen(query.unit) > LISTEN_UNIT_MAX)
        abort();
}

static void fuzz_addresses(Bytes text) {
    size_t before = text.size;
    uint64_t address;

    while (listen_query_take_address(&text, &address) > 0) {
        if (text.size >= before)
            abort();
        before = text.size;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char text[TEXT_MAX + 1] = {}, header[TEXT_MAX + 16] = "Bearer ";
    ListenAddress address;

    fuzz_addresses((Bytes){.data = data, .size = size});
    memcpy(text, data, size < TEXT_MAX ? size : TEXT_MAX);
    fuzz_query(text);
    if (listen_address_parse(text, &address) == 0 &&
        listen_host_is_local(text) != address.is_loopback)
        abort();
    (void)listen_token_matches("0123456789abcdef", text);
    strcat(header, text);
    if (listen_token_is_valid(text) && !listen_token_matches(text, header))
        abort();
    return 0;
}
