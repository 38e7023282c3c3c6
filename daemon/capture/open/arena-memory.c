/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture/open/arena-memory.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "capture/open/adopt.h"
#include "util/log.h"

/*
 * The memory in which a session that unwinds stacks keeps samples until they are written, so that
 * their rings are free at once. The keeper holds it as it holds the rings. What lies in it is the
 * business of the owner of the session; here are its size and its life.
 *
 * An unwound sample takes less than a tenth of what it took in its ring, so an eighth of the rings'
 * memory holds more time than the rings do.
 */

enum {
    RINGS_SHARE = 8,
    LEAST_BYTES = 1 << 20,
    MOST_BYTES = 32 << 20,
};

static uint64_t arena_memory_bytes(const SamplerSession *session, size_t n_cpus) {
    uint64_t max = session->sampler->options.arena_max_bytes,
             bytes = MIN(session->ring_bytes * n_cpus / RINGS_SHARE, max ?: (uint64_t)MOST_BYTES);

    bytes = MIN(bytes, (uint64_t)MOST_BYTES);
    return MAX(bytes / LEAST_BYTES, 1ULL) * LEAST_BYTES;
}

static int arena_memory_make(SamplerSession *session, size_t n_cpus, int *ret_fd) {
    Tag tag = {.kind = TAG_ARENA, .identity = session->identity};
    uint8_t bytes[KEEPER_TAG_SIZE];

    memcpy(tag.name, session->config.name, strnlen(session->config.name, sizeof(tag.name) - 1));
    tag_encode(&tag, bytes);
    session->arena.size = arena_memory_bytes(session, n_cpus);
    return keeper_open_memory(session->sampler->options.keeper, session->arena.size, bytes,
                              &session->arena.slot, ret_fd);
}

static int arena_memory_map(SamplerSession *session, int fd) {
    struct stat st;
    void *memory;

    if (fstat(fd, &st) < 0)
        return -errno;
    if (st.st_size < 0 || (uint64_t)st.st_size < session->arena.size)
        return -EBADMSG;
    memory = mmap(NULL, session->arena.size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED)
        return -errno;
    session->arena.memory = memory;
    return 0;
}

void arena_memory_open(SamplerSession *session, size_t n_cpus) {
    _cleanup_close_ int fd = -1;
    int r = 0;

    if (!plan_unwinds(&session->plan))
        return;
    if (!adopt_arena(session, &fd))
        r = arena_memory_make(session, n_cpus, &fd);
    session->arena.is_open = r == 0;
    if (r == 0)
        r = arena_memory_map(session, fd);
    if (r < 0)
        log_warning(r,
                    "Session '%s' has no memory for unwound samples, so its rings are free again "
                    "only when the samples are written: %m",
                    session->config.name);
}

void arena_memory_close(SamplerSession *session, bool at_keeper) {
    ArenaMemory *arena = &session->arena;

    if (arena->memory)
        (void)munmap(arena->memory, arena->size);
    if (arena->is_open && at_keeper)
        (void)keeper_close_event(session->sampler->options.keeper, arena->slot);
    *arena = (ArenaMemory){};
}
