/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "make-scene.h"

#include "store/window/listing.h"
#include "store/writer/session-private.h"

/* The list of segments, and the leases of those that are read. */

typedef struct Listed {
    unsigned n;
    StoreSegmentInfo last;
} Listed;

static int note_segment(void *userdata, const StoreSegmentInfo *info) {
    Listed *listed = userdata;

    listed->n++;
    listed->last = *info;
    return 0;
}

static int keep_first(void *userdata, const StoreSegmentInfo *info) {
    Listed *listed = userdata;

    if (listed->n++ == 0)
        listed->last = *info;
    return 0;
}

/* Until the writer has nothing left to do: what the open segment takes is known then. */
static bool wait_idle(StoreSession *session) {
    bool idle = false;

    for (unsigned i = 0; !idle && i < 10000; i++) {
        pthread_mutex_lock(&session->mutex);
        idle = !session->first;
        pthread_mutex_unlock(&session->mutex);
        if (!idle)
            usleep(1000);
    }
    return idle;
}

TEST(segments_are_listed_and_leased_while_they_are_read) {
    _cleanup_(scene_done) Scene s;
    _cleanup_(store_lease_freep) StoreLease *lease = NULL;
    _cleanup_close_ int fd = -1;
    uint64_t bytes, removed, freed, used;
    bool sensitive;
    Listed listed = {};

    CHECK_OK(scene_init(&s));
    CHECK_OK(scene_record(&s, ways[0], 3));
    CHECK(wait_idle(s.session));
    CHECK_OK(store_each_segment(s.place.store, NULL, 0, 0, note_segment, &listed));
    CHECK_EQ(listed.n, 3);
    CHECK_EQ(listed.last.completeness, SEGMENT_IS_OPEN);
    CHECK_EQ(listed.last.samples, 2 * SAMPLES);
    CHECK_EQ(store_each_segment(s.place.store, "nobody", 0, 0, note_segment, &listed), -ENOENT);
    listed = (Listed){};
    CHECK_OK(store_each_segment(s.place.store, "default", 0, 1, note_segment, &listed));
    CHECK_EQ(listed.n, 0);
    listed = (Listed){};
    CHECK_OK(store_each_segment(s.place.store, "default", 0, 0, keep_first, &listed));
    CHECK_OK(store_open_segment(s.place.store, "default", listed.last.name, "", &fd, &bytes,
                                &sensitive, &lease));
    CHECK(bytes > 1000 && !sensitive);
    used = store_use(s.place.store).used_bytes;
    CHECK_OK(store_vacuum_to(s.place.store, &(StoreLimits){.max_bytes = 0}, &removed, &freed));
    CHECK_EQ(removed, 2);
    CHECK(store_use(s.place.store).used_bytes > used - freed);
    CHECK(pread(fd, &bytes, 8, 0) == 8);
    lease = store_lease_free(lease);
    CHECK_EQ(store_use(s.place.store).used_bytes, used - freed);
}

TEST_MAIN()
