/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "store/binary/binary-private.h"

/* Names are digits, and a `-` in those of maps: nothing in them is chosen by a program. */

enum { ID_DIGITS_MIN = 4, ID_DIGITS_MAX = 40, PID_DIGITS_MAX = 10, START_DIGITS_MAX = 20 };

int binary_name_of_id(Bytes build_id, char ret[BINARY_NAME_MAX]) {
    if (build_id.size * 2 < ID_DIGITS_MIN || build_id.size * 2 > ID_DIGITS_MAX)
        return -EINVAL;
    for (size_t i = 0; i < build_id.size; i++)
        snprintf(ret + 2 * i, 3, "%02x", build_id.data[i]);
    return 0;
}

void binary_name_of_map(uint32_t pid, uint64_t start_real_ns, char ret[BINARY_NAME_MAX]) {
    snprintf(ret, BINARY_NAME_MAX, "%" PRIu32 "-%" PRIu64, pid, start_real_ns / 1000);
}

static bool binary_name_is_map(const char *name) {
    size_t pid = strspn(name, "0123456789"), start;

    if (pid == 0 || pid > PID_DIGITS_MAX || name[pid] != '-')
        return false;
    start = strspn(name + pid + 1, "0123456789");
    return start > 0 && start <= START_DIGITS_MAX && name[pid + 1 + start] == '\0';
}

bool binary_name_is_valid(const char *name) {
    size_t n = strlen(name);

    return binary_name_is_map(name) || (n >= ID_DIGITS_MIN && n <= ID_DIGITS_MAX && n % 2 == 0 &&
                                        strspn(name, "0123456789abcdef") == n);
}
