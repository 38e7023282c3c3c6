/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "store/segment/manifest-rebuild.h"

#include "make-store.h"

/* Manifests that are made of the data again: they say what the writer noted. */

static int write_two(Place *place, Way way, bool facts) {
    SessionConfig config = store_session("default", way.layout, way.level);
    StoreSession *session = NULL;
    int r = store_session_new(place->store, &config, false, &session);

    if (r == 0)
        r = begin_segment(place, session);
    for (uint64_t sweep = 1; r == 0 && sweep <= 5; sweep++) {
        uint64_t now = clock_anchor_now().monotonic_ns;

        r = write_side_band(session, now);
        for (unsigned cpu = 0; r == 0 && cpu < 3; cpu++)
            r = write_samples(session, cpu, now, 700 * (cpu + 1));
        if (r == 0)
            r = end_sweep(session, sweep);
        if (r == 0 && facts)
            r = store_session_note(session, &(SegmentFacts){.inferred = 3,
                                                            .gap = &(PdGap){
                                                                .from_ns = now,
                                                                .to_ns = now + 5,
                                                                .cpu = 1,
                                                                .reason = PD_GAP_OFFLINE,
                                                            }});
    }
    store_session_close(session);
    return r;
}

static int compare_manifests(const Manifest *a, const Manifest *b) {
#define SAME(member)                                                                               \
    if (a->member != b->member) {                                                                  \
        printf("# " #member ": %" PRIu64 ", rebuilt %" PRIu64 "\n", (uint64_t)a->member,           \
               (uint64_t)b->member);                                                               \
        return -EINVAL;                                                                            \
    }
    SAME(sequence)
    SAME(directory)
    SAME(completeness)
    SAME(first_ns)
    SAME(last_ns)
    SAME(samples)
    SAME(raw_bytes)
    SAME(stored_bytes)
    SAME(lost)
    SAME(weight)
    SAME(sensitive)
    SAME(n_events)
    SAME(anchors[0].monotonic_ns)
    SAME(anchors[0].real_ns)
    for (uint32_t cpu = 0; cpu < MANIFEST_CPUS_MAX; cpu++)
        if (manifest_has_cpu(a, cpu) != manifest_has_cpu(b, cpu))
            return -EINVAL;
    return strcmp(a->session, b->session) || strcmp(a->host, b->host) ||
                   strcmp(a->recorder, b->recorder) || strcmp(a->events[0], b->events[0])
               ? -EINVAL
               : 0;
}

static int compare_indices(const Manifest *a, const Manifest *b) {
    if (a->n_frames != b->n_frames) {
        printf("# %zu frames, rebuilt %zu\n", a->n_frames, b->n_frames);
        return -EINVAL;
    }
    for (size_t i = 0; i < a->n_frames; i++) {
        const ManifestFrame *x = &a->frames[i], *y = NULL;

        /* Files are walked one after the other, and written side by side. */
        for (size_t k = 0; !y && k < b->n_frames; k++)
            if (b->frames[k].file == x->file && b->frames[k].offset == x->offset)
                y = &b->frames[k];
        if (!y || x->raw != y->raw || x->kind != y->kind || x->first_ns != y->first_ns ||
            x->last_ns != y->last_ns) {
            printf("# frame %zu differs\n", i);
            return -EINVAL;
        }
    }
    return 0;
}

TEST(a_manifest_rebuilt_from_the_data_equals_the_written_one) {
    for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
        _cleanup_(manifest_freep) Manifest *written = NULL, *rebuilt = NULL;
        _cleanup_close_ int fd = -1;
        SegmentName name;
        char path[160];

        PLACE(place);
        CHECK_OK(place_open(&place));
        CHECK_OK(write_two(&place, ways[i], true));
        CHECK_OK(last_manifest(&place, ".perf.data", &name, &written));
        CHECK_EQ(written->completeness, COMPLETE);
        CHECK_EQ(written->samples, 5 * 4200);
        CHECK_EQ(written->inferred, 15);
        CHECK_EQ(written->coverage.n_gaps, 5);
        CHECK_EQ(written->n_anchors, 2);
        snprintf(path, sizeof(path), "%s/sessions/default", place.path);
        fd = open(path, O_RDONLY | O_DIRECTORY);
        CHECK_OK(manifest_rebuild(fd, &name, "default", &rebuilt));
        CHECK_OK(compare_manifests(written, rebuilt));
        if (ways[i].level > 0)
            CHECK_OK(compare_indices(written, rebuilt));
    }
}

TEST(an_index_has_the_positions_of_the_frames) {
    _cleanup_(manifest_freep) Manifest *m = NULL;
    _cleanup_close_ int fd = -1;
    SegmentName name;
    char last[256], path[500];

    PLACE(place);
    CHECK_OK(place_open(&place));
    CHECK_OK(write_two(&place, ways[0], false));
    CHECK_OK(last_manifest(&place, ".perf.data", &name, &m));
    CHECK_EQ(count_names(&place, "default", ".perf.data", last), 1);
    snprintf(path, sizeof(path), "%s/sessions/default/%s", place.path, last);
    fd = open(path, O_RDONLY);
    CHECK(fd >= 0);
    /* The preamble, then side-band and samples in each of five sweeps. */
    CHECK_EQ(m->n_frames, 11);
    for (size_t i = 0; i < m->n_frames; i++) {
        uint8_t head[8];

        CHECK_EQ(pread(fd, head, sizeof(head), (off_t)m->frames[i].offset), 8);
        CHECK(load_u32(head, false) == PD_RECORD_COMPRESSED || m->frames[i].raw < 512);
        CHECK_EQ(m->frames[i].kind, i > 0 && i % 2 == 0 ? STORE_SAMPLES : STORE_SIDE_BAND);
        CHECK(m->frames[i].last_ns >= m->frames[i].first_ns && m->frames[i].first_ns > 0);
    }
}

TEST(missing_and_bad_manifests_are_rebuilt) {
    for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
        SessionConfig config = store_session("default", ways[i].layout, ways[i].level);
        const char *file = ways[i].layout == LAYOUT_FILE ? "*.json" : "*/manifest.json";
        StoreSession *session = NULL;
        int found = -1;

        PLACE(place);
        for (unsigned k = 0; k < 2; k++) {
            CHECK_OK(place_again(&place));
            CHECK_OK(write_two(&place, ways[i], false));
        }
        place.store = store_free(place.store);
        CHECK_EQ(shell("cd %s/sessions/default && set -- %s && rm $1 && echo '{' > $2", place.path,
                       file),
                 0);
        CHECK_OK(place_open(&place));
        CHECK_OK(store_session_new(place.store, &config, false, &session));
        for (unsigned k = 0; k < 5000 && found != 0; k++) {
            usleep(1000);
            found =
                shell("cd %s/sessions/default && [ $(cat %s | grep -c '\"samples\":21000') = 2 ]",
                      place.path, file);
        }
        CHECK_EQ(found, 0);
        store_session_close(session);
    }
}

TEST_MAIN()
