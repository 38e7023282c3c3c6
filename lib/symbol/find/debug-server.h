/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The servers of DEBUGINFOD_URLS, by libdebuginfod if that is installed. It keeps what it got in a
 * cache of its own. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/macro.h"

typedef struct DebugServer DebugServer;

typedef struct DebugServerOptions {
    uint64_t limit_ns; /* how long all requests together may take */
    void (*progress)(const char *what, void *arg);
    void *arg;
} DebugServerOptions;

/* -ENOPKG: the library is not here. */
int debug_server_new(const DebugServerOptions *options, DebugServer **ret);
DebugServer *debug_server_free(DebugServer *server);
DEFINE_CLEANUP(DebugServer *, debug_server_free);
/* Asks for the debug information of a build id, or for the program itself: a descriptor, or a
 * negative errno; -ETIME when the time is up, which ends all later requests at once. */
int debug_server_find(DebugServer *server, const uint8_t *build_id, size_t size, bool program);
