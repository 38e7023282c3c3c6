/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "keeper/rights/capability.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Wraps the kernel's calls for capabilities, which take a set as two halves of 32 bits. */

enum { LAST_CAPABILITY = 63 };

typedef struct __user_cap_data_struct Capabilities[_LINUX_CAPABILITY_U32S_3];

static struct __user_cap_header_struct capability_header(void) {
    return (struct __user_cap_header_struct){.version = _LINUX_CAPABILITY_VERSION_3};
}

/* Nothing is inheritable. */
static int capability_capabilities_set(uint64_t permitted, uint64_t effective) {
    struct __user_cap_header_struct header = capability_header();
    Capabilities data = {
        {.effective = (uint32_t)effective, .permitted = (uint32_t)permitted},
        {.effective = (uint32_t)(effective >> 32), .permitted = (uint32_t)(permitted >> 32)},
    };

    return syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}

uint64_t capabilities_permitted(void) {
    struct __user_cap_header_struct header = capability_header();
    Capabilities data = {};

    if (syscall(SYS_capget, &header, data) < 0)
        return 0;
    return data[0].permitted | (uint64_t)data[1].permitted << 32;
}

int capabilities_limit(uint64_t set) {
    (void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    return capability_capabilities_set(set, set);
}

/* Not an error: capabilities that this kernel does not know, and those that cannot be dropped
 * without CAP_SETPCAP, since we do not have them either. */
void capabilities_empty_bounding_set(void) {
    for (unsigned long i = 0; i <= LAST_CAPABILITY; i++)
        if (prctl(PR_CAPBSET_DROP, i, 0, 0, 0) < 0 && errno == EINVAL)
            return;
}

int capabilities_rest(void) {
    return capability_capabilities_set(capabilities_permitted(), 0);
}

int capabilities_use(void) {
    uint64_t set = capabilities_permitted();

    return capability_capabilities_set(set, set);
}
