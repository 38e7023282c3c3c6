/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdio.h>
#include <sys/mman.h>

#include "config/config.h"
#include "fuzz.h"
#include "util/file.h"
#include "util/macro.h"

/* A configuration file of any bytes: read, and every problem in it told. Input: the file. */

static void on_problem(void *userdata _unused_, const char *path _unused_, unsigned line _unused_,
                       const char *problem) {
    fuzz_touch((const uint8_t *)problem, __builtin_strlen(problem));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    _cleanup_close_ int fd = memfd_create("config", MFD_CLOEXEC);
    char path[64];
    Config config;

    if (fd < 0 || file_write_all(fd, data, size) < 0)
        return 0;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    config_set_defaults(&config);
    (void)config_load(&config, path, on_problem, NULL);
    return 0;
}
