/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "symbol/find/debug-server.h"

#include <dlfcn.h>
#include <elfutils/debuginfod.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/clock.h"

/*
 * The library brings an HTTP client with it, so it is loaded only when servers were asked for. It
 * calls us now and then during a transfer; our answer can end it, and that is how a slow server is
 * left. It is never unloaded, because what its HTTP and TLS libraries allocate for a whole process
 * would be lost then, once for each resolver.
 */

static const char library_name[] = "libdebuginfod.so.1";

typedef struct DebugServerCalls {
    debuginfod_client *(*begin)(void);
    void (*end)(debuginfod_client *client);
    int (*find_debuginfo)(debuginfod_client *client, const unsigned char *id, int size,
                          char **path);
    int (*find_executable)(debuginfod_client *client, const unsigned char *id, int size,
                           char **path);
    void (*set_progress)(debuginfod_client *client, debuginfod_progressfn_t progress);
    void (*set_data)(debuginfod_client *client, void *data);
} DebugServerCalls;

struct DebugServer {
    DebugServerOptions options;
    void *library;
    DebugServerCalls calls;
    debuginfod_client *client;
    uint64_t until_ns, spent_ns;
    bool is_over;
};

static int debug_server_load(DebugServer *server) {
    DebugServerCalls *calls = &server->calls;
    const struct {
        const char *name;
        void *to;
    } names[] = {{"debuginfod_begin", &calls->begin},
                 {"debuginfod_end", &calls->end},
                 {"debuginfod_find_debuginfo", &calls->find_debuginfo},
                 {"debuginfod_find_executable", &calls->find_executable},
                 {"debuginfod_set_progressfn", &calls->set_progress},
                 {"debuginfod_set_user_data", &calls->set_data}};

    server->library = dlopen(library_name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        void *found = server->library ? dlsym(server->library, names[i].name) : NULL;

        if (!found)
            return -ENOPKG;
        memcpy(names[i].to, &found, sizeof(found));
    }
    return 0;
}

/* The library calls this with its client alone; the rest is what we gave that client. */
static int debug_server_on_progress(debuginfod_client *client, long done, long all) {
    void *library = dlopen(library_name, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    void *(*get_data)(debuginfod_client *) = NULL, *found;
    DebugServer *server;
    char text[128];

    found = library ? dlsym(library, "debuginfod_get_user_data") : NULL;
    if (library)
        (void)dlclose(library);
    if (!found)
        return 1;
    memcpy(&get_data, &found, sizeof(found));
    server = get_data(client);
    if (clock_monotonic_ns() >= server->until_ns) {
        server->is_over = true;
        return 1;
    }
    if (server->options.progress) {
        snprintf(text, sizeof(text), "Asking the debuginfod servers: %ld of %ld", done, all);
        server->options.progress(text, server->options.arg);
    }
    return 0;
}

int debug_server_new(const DebugServerOptions *options, DebugServer **ret) {
    _cleanup_(debug_server_freep) DebugServer *server = calloc(1, sizeof(*server));
    int r;

    if (!server)
        return -ENOMEM;
    server->options = *options;
    r = debug_server_load(server);
    if (r < 0)
        return r;
    server->client = server->calls.begin();
    if (!server->client)
        return -ENOMEM;
    server->calls.set_progress(server->client, debug_server_on_progress);
    server->calls.set_data(server->client, server);
    *ret = TAKE_PTR(server);
    return 0;
}

DebugServer *debug_server_free(DebugServer *server) {
    if (!server)
        return NULL;
    if (server->client)
        server->calls.end(server->client);
    if (server->library)
        (void)dlclose(server->library);
    free(server);
    return NULL;
}

int debug_server_find(DebugServer *server, const uint8_t *build_id, size_t size, bool program) {
    uint64_t began_ns = clock_monotonic_ns();
    int fd;

    if (server->is_over || server->spent_ns >= server->options.limit_ns)
        return -ETIME;
    server->until_ns = began_ns + (server->options.limit_ns - server->spent_ns);
    fd = (program ? server->calls.find_executable
                  : server->calls.find_debuginfo)(server->client, build_id, (int)size, NULL);
    server->spent_ns += clock_monotonic_ns() - began_ns;
    return server->is_over ? -ETIME : fd;
}
