/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "binary/binary-work.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "binary/kept-kallsyms.h"
#include "util/clock.h"
#include "util/log.h"

/* Runs on the thread. A disk that is full or slow costs names and nothing else, so a failure is
 * logged once in a while and counted. */

BinaryItem *binary_item_new(const BinaryNew *new) {
    size_t size = new->path ? strlen(new->path) + 1 : 0;
    BinaryItem *item = calloc(1, sizeof(*item) + size);

    if (!item) {
        if (new->fd >= 0)
            (void)close(new->fd);
        return NULL;
    }
    item->new = *new;
    item->new.path = size > 0 ? item->path : NULL;
    if (size > 0)
        memcpy(item->path, new->path, size);
    return item;
}

BinaryItem *binary_item_free(BinaryItem *item) {
    if (!item)
        return NULL;
    closep(&item->new.fd);
    free(item);
    return NULL;
}

static void binary_work_log(const char *name, int error) {
    static LogRate rate = {.interval_ns = 600 * NS_PER_SECOND, .burst = 1};

    if (error == -EEXIST || error == -EFBIG)
        log_debug("The symbols of '%s' are not kept, they are too large or the kernel has that "
                  "build id",
                  name);
    else
        log_limited(&rate, LOG_LEVEL_WARNING, error,
                    "Failed to keep the symbols of '%s', so its samples may lose their names when "
                    "the program is replaced: %m",
                    name);
}

static void binary_work_item(BinaryWork *work, const BinaryItem *item) {
    const BinaryNew *new = &item->new;
    int r = new->fd >= 0 ? binary_store_put(work->store, new)
                         : binary_store_note_path(work->store, new->name, new->path);

    if (r == 0)
        return;
    work->n_failed++;
    binary_work_log(new->name, r);
}

static void binary_work_load(const BinaryWork *work) {
    int r = binary_store_load(work->store);

    if (r < 0)
        log_warning(r, "Failed to list the symbols that earlier runs kept: %m");
    r = kept_kallsyms_renew(work->keeper, work->store);
    if (r < 0 && r != -EACCES && r != -ENODATA)
        binary_work_log("the kernel", r);
}

void binary_work_run(BinaryWork *work) {
    int r;

    if (work->loads)
        binary_work_load(work);
    for (BinaryItem *item = work->items; item; item = item->next)
        binary_work_item(work, item);
    if (!work->tends)
        return;
    /* The kernel is sampled all the time, without a mapping that would say so. */
    kept_kallsyms_use(work->store);
    r = binary_store_tend(work->store);
    if (r < 0)
        log_debug("Failed to tend the kept symbols, error %d", r);
}
