/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/remote/kept-binary.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/remote/remote.h"
#include "client/remote/reply.h"
#include "protocol/connection.h"
#include "protocol/value.h"
#include "util/array.h"
#include "util/clock.h"
#include "util/file.h"

/*
 * The list comes once, and again when something newer may be in it. Each file comes over a
 * connection of its own, since that ends with it. Names and sizes of the daemon are checked: names
 * become names of files. A daemon that lets us wait is not asked again.
 */

enum { BINARIES_MAX = 1 << 16, PIECE = 64 << 10 };

static const uint64_t timeout_ns = 5 * NS_PER_SECOND; /* of each wait */
static const uint64_t limit_ns = 30 * NS_PER_SECOND;  /* of a list or a file */
static const uint64_t list_age_ns = 10 * NS_PER_SECOND;
static const uint64_t binary_bytes_max = 256ULL << 20;

struct KeptBinaries {
    const Context *context;
    KeptBinary *items; /* sorted by name */
    size_t n;
    uint64_t listed_ns; /* 0: not yet */
    uint64_t until_ns;  /* when what is asked for now has to be here */
    bool is_over;       /* nobody answered in time */
};

static const char *const kept_kinds[KEPT_KINDS] = {"elf", "vdso", "kallsyms", "map"};

const char *kept_kind_name(KeptKind kind) {
    return kept_kinds[kind];
}

int kept_binaries_new(const Context *c, KeptBinaries **ret) {
    KeptBinaries *kept = calloc(1, sizeof(*kept));

    if (!kept)
        return -ENOMEM;
    kept->context = c;
    *ret = kept;
    return 0;
}

KeptBinaries *kept_binaries_free(KeptBinaries *kept) {
    if (!kept)
        return NULL;
    free(kept->items);
    free(kept);
    return NULL;
}

/* How long the next wait may be; 0: the time is up. */
static uint64_t kept_binaries_wait_ns(const KeptBinaries *kept) {
    uint64_t now = clock_monotonic_ns();

    return now < kept->until_ns ? MIN(timeout_ns, kept->until_ns - now) : 0;
}

static int kept_binaries_receive(const KeptBinaries *kept, Remote *remote, Reply *ret) {
    uint64_t wait_ns = kept_binaries_wait_ns(kept);

    return wait_ns == 0 ? -ETIMEDOUT : connection_receive(remote_connection(remote), wait_ns, ret);
}

static int kept_binaries_compare(const void *a, const void *b) {
    return strcmp(((const KeptBinary *)a)->name, ((const KeptBinary *)b)->name);
}

static bool kept_binaries_take_name(const char *name, KeptKind kind, KeptBinary *to) {
    size_t n = strlen(name);
    const char *allowed = kind == KEPT_MAP ? "0123456789-" : "0123456789abcdef";

    if (n < 3 || n >= sizeof(to->name) || strspn(name, allowed) != n)
        return false;
    memcpy(to->name, name, n + 1);
    return true;
}

static int kept_binaries_take(KeptBinaries *kept, const json_t *reply) {
    const json_t *binary = reply_member(reply, "binary");
    const char *kind = reply_string(binary, "kind");
    KeptBinary item = {.bytes = reply_count(binary, "bytes")}, *added;

    while (item.kind < KEPT_KINDS && strcmp(kept_kinds[item.kind], kind) != 0)
        item.kind++;
    if (item.kind == KEPT_KINDS || item.bytes > binary_bytes_max || kept->n >= BINARIES_MAX ||
        !kept_binaries_take_name(reply_string(binary, "name"), item.kind, &item))
        return 0;
    added = array_grow(&kept->items, &kept->n);
    if (!added)
        return -ENOMEM;
    *added = item;
    return 0;
}

/* Connects and makes one call. */
static int kept_binaries_call(KeptBinaries *kept, const char *method, json_t *parameters,
                              CallFlags flags, Remote **ret) {
    _cleanup_(remote_freep) Remote *remote = NULL;
    int r = parameters ? remote_try(kept->context, &remote) : -ENOMEM;

    kept->until_ns = clock_monotonic_ns() + limit_ns;
    if (r < 0) {
        json_decref(parameters);
        return r;
    }
    r = connection_call(remote_connection(remote), method, parameters, flags, timeout_ns);
    if (r == 0)
        *ret = TAKE_PTR(remote);
    return r;
}

static int kept_binaries_list(KeptBinaries *kept) {
    _cleanup_(remote_freep) Remote *remote = NULL;
    Reply reply = {.continues = true};
    int r = kept_binaries_call(kept, "io.profd.Control.ListBinaries", json_object(), CALL_MORE,
                               &remote);

    free(kept->items);
    kept->items = NULL;
    kept->n = 0;
    while (r == 0 && reply.continues) {
        r = kept_binaries_receive(kept, remote, &reply);
        if (r == 0)
            r = reply.error ? -EACCES : kept_binaries_take(kept, reply.parameters);
    }
    if (kept->n > 0)
        qsort(kept->items, kept->n, sizeof(*kept->items), kept_binaries_compare);
    kept->listed_ns = clock_monotonic_ns();
    kept->is_over = r == -ETIMEDOUT;
    return r;
}

static bool kept_binaries_may_list(const KeptBinaries *kept) {
    return !kept->is_over &&
           (kept->listed_ns == 0 || clock_monotonic_ns() - kept->listed_ns > list_age_ns);
}

static const KeptBinary *kept_binaries_look_up(const KeptBinaries *kept, const KeptBinary *key) {
    return kept->n > 0 ? bsearch(key, kept->items, kept->n, sizeof(*key), kept_binaries_compare)
                       : NULL;
}

const KeptBinary *kept_binaries_find(KeptBinaries *kept, const char *name) {
    const KeptBinary *found;
    KeptBinary key = {};

    if (strlen(name) >= sizeof(key.name))
        return NULL;
    memcpy(key.name, name, strlen(name) + 1);
    found = kept_binaries_look_up(kept, &key);
    if (!found && kept_binaries_may_list(kept) && kept_binaries_list(kept) == 0)
        found = kept_binaries_look_up(kept, &key);
    return found;
}

const KeptBinary *kept_binaries_next(KeptBinaries *kept, const char *prefix, size_t *from) {
    if (*from == 0 && kept_binaries_may_list(kept) && kept_binaries_list(kept) < 0)
        return NULL;
    for (; *from < kept->n; ++*from)
        if (strncmp(kept->items[*from].name, prefix, strlen(prefix)) == 0)
            return &kept->items[(*from)++];
    return NULL;
}

static int kept_binaries_copy(const KeptBinaries *kept, Remote *remote, uint64_t bytes, int fd) {
    _cleanup_free_ uint8_t *piece = malloc(PIECE);
    int r = piece ? 0 : -ENOMEM;

    while (r == 0 && bytes > 0) {
        uint64_t wait_ns = kept_binaries_wait_ns(kept);
        ssize_t n = wait_ns == 0 ? -ETIMEDOUT
                                 : connection_read(remote_connection(remote), piece,
                                                   MIN(bytes, (uint64_t)PIECE), wait_ns);

        if (n <= 0)
            return n < 0 ? (int)n : -EPIPE;
        bytes -= (uint64_t)n;
        r = file_write_all(fd, piece, (size_t)n);
    }
    if (r == 0 && lseek(fd, 0, SEEK_SET) < 0)
        r = -errno;
    return r;
}

static int kept_binaries_fetch(KeptBinaries *kept, const KeptBinary *binary, int fd) {
    _cleanup_(remote_freep) Remote *remote = NULL;
    json_t *parameters = json_object();
    uint64_t bytes;
    Reply reply;
    int r;

    value_set(&parameters, "binary", remote_word(binary->name));
    r = kept_binaries_call(kept, "io.profd.Control.Read", parameters, CALL_UPGRADE, &remote);
    if (r == 0)
        r = kept_binaries_receive(kept, remote, &reply);
    if (r < 0)
        return r;
    if (reply.error)
        return -ENOENT;
    bytes = reply_count(reply.parameters, "bytes");
    return bytes > binary_bytes_max ? -EFBIG : kept_binaries_copy(kept, remote, bytes, fd);
}

int kept_binaries_read(KeptBinaries *kept, const KeptBinary *binary, int fd) {
    int r = kept->is_over ? -ETIMEDOUT : kept_binaries_fetch(kept, binary, fd);

    kept->is_over |= r == -ETIMEDOUT;
    return r;
}
