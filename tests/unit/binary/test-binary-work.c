/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "binary/binary-work.h"

#include <sys/mman.h>
#include <unistd.h>

#include "make-store.h"
#include "scan/module.h"
#include "store/binary/binary-private.h"
#include "test.h"
#include "util/clock.h"

/* What the thread does with the symbols that are kept, as time goes by. */

/* More than a use may lie before the oldest sample. */
#define LONG_NS (2 * 3600 * NS_PER_SECOND)

static int keep(BinaryStore *store, const char *name, BinaryKind kind) {
    BinaryNew new = {.kind = kind, .fd = memfd_create("kept", MFD_CLOEXEC), .bytes = 100};
    int r;

    if (new.fd < 0 || ftruncate(new.fd, 100) < 0)
        abort();
    snprintf(new.name, sizeof(new.name), "%s", name);
    r = binary_store_put(store, &new);
    (void)close(new.fd);
    return r;
}

static int count_one(void *userdata, const BinaryInfo *info _unused_) {
    ++*(unsigned *)userdata;
    return 0;
}

static unsigned count(BinaryStore *store) {
    unsigned n = 0;

    (void)binary_store_each(store, count_one, &n);
    return n;
}

TEST(the_running_kernel_stays_when_profd_runs_longer_than_the_store_reaches_back) {
    BinaryWork work = {.tends = true};
    char name[BINARY_NAME_MAX];
    Place place = {};
    BuildId id = {};

    if (sysfs_build_id("/sys/kernel/notes", &id) < 0)
        TEST_SKIP("this kernel has no build id");
    CHECK_OK(binary_name_of_id((Bytes){.data = id.bytes, .size = id.size}, name));
    CHECK_OK(place_init(&place));
    CHECK_OK(place_open(&place));
    CHECK_OK(binary_store_new(place.store, &work.store));
    place.store->binaries_max_bytes = 1 << 20;
    CHECK_OK(binary_store_load(work.store));
    CHECK_OK(keep(work.store, "aa01", BINARY_ELF));
    CHECK_OK(keep(work.store, name, BINARY_KALLSYMS));
    for (size_t i = 0; i < 2; i++)
        work.store->entries[i].used_real_ns -= LONG_NS;
    place.store->snapshot_oldest_real_ns = clock_ns(CLOCK_REALTIME);
    binary_work_run(&work);
    CHECK_EQ(count(work.store), 1);
    CHECK(binary_store_has(work.store, name, 0));
    CHECK(!binary_store_has(work.store, "aa01", 0));
    binary_store_free(work.store);
    place_done(&place);
}

TEST_MAIN()
