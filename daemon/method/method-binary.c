/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "call/errand.h"
#include "method/method-private.h"
#include "protocol/value.h"

/* Lists and sends what names the code that was sampled. The thread that writes it reads it, so that
 * nobody sees a file half written. */

/* A ListBinaries() call. */
typedef struct BinaryListing {
    BinaryStore *store;
    json_t *list;
    int error;
} BinaryListing;

static json_t *method_binary_paths_json(const BinaryInfo *info) {
    json_t *list = json_array();

    for (size_t i = 0; i < info->n_paths; i++)
        value_append(&list, answer_text(info->paths[i]));
    return list;
}

static int method_binary_add(void *userdata, const BinaryInfo *info) {
    const BinaryListing *listing = userdata;
    bool is_map = info->kind == BINARY_MAP;

    return json_array_append_new(
        listing->list, json_pack("{s:{s:o, s:s, s:o, s:o, s:o, s:o}}", "binary", "name",
                                 answer_text(info->name), "kind", binary_kind_name(info->kind),
                                 "buildId", is_map ? json_null() : answer_text(info->name), "paths",
                                 method_binary_paths_json(info), "bytes", answer_count(info->bytes),
                                 "lastUsedUsec", answer_time(info->used_real_ns)));
}

static void method_binary_list(void *userdata) {
    BinaryListing *listing = userdata;

    listing->error = binary_store_each(listing->store, method_binary_add, listing);
}

static void method_binary_answer_list(void *userdata, Call *call) {
    BinaryListing *listing = userdata;

    if (listing->error < 0 || call_stream_array(call, TAKE_PTR(listing->list)) < 0)
        (void)call_fail_reason(call, -ENOMEM, NULL);
}

static void method_binary_list_free(void *userdata) {
    BinaryListing *listing = userdata;

    json_decref(listing->list);
    free(listing);
}

int method_list_binaries(void *userdata, Call *call) {
    Daemon *daemon = userdata;
    BinaryListing *listing = calloc(1, sizeof(*listing));

    if (!listing)
        return -ENOMEM;
    *listing = (BinaryListing){.store = binaries_store(daemon->binaries), .list = json_array()};
    return errand_run(daemon->waits, binaries_thread(daemon->binaries), call,
                      &(ErrandOptions){.work = method_binary_list,
                                       .answer = method_binary_answer_list,
                                       .release = method_binary_list_free,
                                       .userdata = listing});
}

/* A Read() call of a binary. */
typedef struct BinaryOpening {
    BinaryStore *store;
    Worker *thread;
    char name[BINARY_NAME_MAX];
    int fd, error;
    uint64_t bytes;
} BinaryOpening;

static void method_binary_open(void *userdata) {
    BinaryOpening *o = userdata;

    o->error = binary_store_open_file(o->store, o->name, &o->fd, &o->bytes);
}

static void method_binary_answer_open(void *userdata, Call *call) {
    BinaryOpening *o = userdata;

    if (o->error == -ENOENT)
        (void)call_fail(call, "NoSuchBinary", json_pack("{s:o}", "name", answer_echo(o->name)));
    else if (o->error < 0)
        (void)call_fail_reason(call, o->error, NULL);
    else
        (void)errand_reply_file(call, o->fd, o->bytes);
}

static void method_binary_open_free(void *userdata) {
    BinaryOpening *o = userdata;

    housekeeper_close(o->thread, &o->fd);
    free(o);
}

int method_read_binary(Daemon *daemon, Call *call, const char *name) {
    BinaryOpening *o;

    if (!binary_name_is_valid(name))
        return call_fail(call, "NoSuchBinary", json_pack("{s:o}", "name", answer_echo(name)));
    o = calloc(1, sizeof(*o));
    if (!o)
        return -ENOMEM;
    *o = (BinaryOpening){.store = binaries_store(daemon->binaries),
                         .thread = binaries_thread(daemon->binaries),
                         .fd = -1};
    snprintf(o->name, sizeof(o->name), "%s", name);
    return errand_run(daemon->waits, binaries_thread(daemon->binaries), call,
                      &(ErrandOptions){.work = method_binary_open,
                                       .answer = method_binary_answer_open,
                                       .release = method_binary_open_free,
                                       .userdata = o});
}
