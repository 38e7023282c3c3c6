/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "store/manifest/manifest.h"
#include "test.h"

/* A manifest there and back, and what is no manifest. */

static Manifest *made(void) {
    Manifest *m;

    if (manifest_new(&m) < 0)
        abort();
    strcpy(m->session, "default");
    strcpy(m->boot, "0f1e2d3c-0000-1111-2222-333344445555");
    strcpy(m->host, "host");
    strcpy(m->recorder, "profd 1");
    strcpy(m->damage, "no record at offset 12");
    m->sequence = 42;
    m->covered = true;
    m->coverage.from_ns = 4;
    m->coverage.to_ns = 900;
    pd_coverage_add_cpu(&m->coverage, 77);
    m->after = PD_GAP_STOPPED;
    m->completeness = RECOVERED;
    m->directory = m->synchronised = m->sensitive = true;
    m->raw_bytes = 1000;
    m->stored_bytes = 100;
    if (manifest_add_loss(m, 3, STORE_LOST_QUEUE, 1) < 0)
        abort();
    m->throttled_ns = 2;
    m->inferred = 3;
    m->dropped = 4;
    m->weight = 5;
    m->stacks = (StoreStacks){1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 16384};
    manifest_add_samples(m, 10, 500, 900);
    manifest_add_samples(m, 10, 400, 600);
    manifest_add_cpu(m, 0);
    manifest_add_cpu(m, 77);
    manifest_add_cpu(m, MANIFEST_CPUS_MAX);
    if (manifest_add_anchor(m, &(ClockAnchor){1, 1795177219000000001, 3}) < 0 ||
        manifest_add_anchor(m, &(ClockAnchor){11, 12, 13}) < 0 ||
        pd_coverage_add_gap(&m->coverage, &(PdGap){5, 6, 1, PD_GAP_OFFLINE}) < 0 ||
        pd_coverage_add_gap(&m->coverage, &(PdGap){8, PD_GAP_OPEN, PD_ALL_CPUS, PD_GAP_PAUSED}) <
            0 ||
        manifest_add_event(m, "cycles:u") < 0 ||
        manifest_add_frame(m, &(ManifestFrame){104, 50, 400, 500, 0, STORE_SIDE_BAND}) < 0 ||
        manifest_add_frame(m, &(ManifestFrame){0, 950, 400, 900, 3, STORE_SAMPLES}) < 0)
        abort();
    return m;
}

static int encode(const Manifest *m, Buffer *out) {
    buffer_clear(out);
    return manifest_encode(m, out);
}

TEST(a_manifest_is_read_back_as_written) {
    _cleanup_(manifest_freep) Manifest *m = made(), *back = NULL;
    _cleanup_(buffer_done) Buffer first = {}, second = {};

    CHECK_OK(encode(m, &first));
    CHECK_OK(manifest_decode(buffer_bytes(&first), &back));
    CHECK_OK(encode(back, &second));
    CHECK(bytes_equal(buffer_bytes(&first), buffer_bytes(&second)));
    CHECK_EQ(back->samples, 20);
    CHECK_EQ(back->first_ns, 400);
    CHECK_EQ(back->last_ns, 900);
    CHECK_EQ(back->n_frames, 2);
    CHECK_EQ(back->frames[1].file, 3);
    CHECK_EQ(back->anchors[0].real_ns, 1795177219000000001);
    CHECK_EQ(back->lost, 1);
    CHECK_EQ(back->n_losses, 1);
    CHECK_EQ(back->losses[0].cpu, 3);
    CHECK_EQ(back->losses[0].cause, STORE_LOST_QUEUE);
    CHECK(back->covered);
    CHECK_EQ(back->coverage.from_ns, 4);
    CHECK_EQ(back->coverage.to_ns, 900);
    CHECK_EQ(back->coverage.n_gaps, 2);
    CHECK_EQ(back->coverage.gaps[0].cpu, 1);
    CHECK_EQ(back->coverage.gaps[0].reason, PD_GAP_OFFLINE);
    CHECK_EQ(back->coverage.gaps[1].to_ns, PD_GAP_OPEN);
    CHECK_EQ(back->after, PD_GAP_STOPPED);
    CHECK(pd_coverage_has_cpu(&back->coverage, 77) && !pd_coverage_has_cpu(&back->coverage, 0));
    CHECK(manifest_has_cpu(back, 77) && !manifest_has_cpu(back, 76));
    CHECK(back->directory && back->synchronised && back->sensitive);
    CHECK_EQ(back->completeness, RECOVERED);
    CHECK_EQ(memcmp(&back->stacks, &m->stacks, sizeof(m->stacks)), 0);
}

TEST(names_of_any_bytes_are_escaped_and_restored) {
    _cleanup_(manifest_freep) Manifest *m = made(), *back = NULL;
    _cleanup_(buffer_done) Buffer json = {};
    char longest[MANIFEST_TEXT_MAX];

    CHECK_OK(manifest_add_event(m, "\xff\x1b[2J\"</script>"));
    memset(longest, 0xff, sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    CHECK_OK(manifest_add_event(m, longest));
    CHECK_OK(encode(m, &json));
    for (size_t i = 0; i < json.size; i++)
        CHECK(json.data[i] >= ' ' || json.data[i] == '\n');
    CHECK_OK(manifest_decode(buffer_bytes(&json), &back));
    buffer_zero(&json, 1);
    CHECK(strstr((char *)json.data, "\\\\xff\\\\x1b[2J"));
    CHECK_STREQ(back->events[1], "\xff\x1b[2J\"</script>");
    CHECK_STREQ(back->events[2], longest);
}

TEST(an_index_is_thinned_and_still_covers_everything) {
    enum { N = 3 * MANIFEST_FRAMES_MAX };
    _cleanup_(manifest_freep) Manifest *m = NULL;
    uint64_t raw = 0, end = 0;

    CHECK_OK(manifest_new(&m));
    for (uint64_t i = 0; i < N; i++)
        CHECK_OK(manifest_add_frame(
            m, &(ManifestFrame){.offset = i * 10,
                                .raw = 7,
                                .first_ns = i,
                                .last_ns = i + 3,
                                .kind = i % 2 ? STORE_SAMPLES : STORE_SIDE_BAND}));
    CHECK(m->n_frames <= MANIFEST_FRAMES_MAX);
    for (size_t i = 0; i < m->n_frames; i++) {
        raw += m->frames[i].raw;
        CHECK(i == 0 || m->frames[i].offset > m->frames[i - 1].offset);
        if (m->frames[i].kind == STORE_SAMPLES) {
            CHECK(m->frames[i].first_ns <= end + 3 || end == 0);
            end = m->frames[i].last_ns;
        }
    }
    CHECK_EQ(raw, 7ULL * N);
    CHECK_EQ(m->frames[0].first_ns, 0);
    CHECK_EQ(end, N - 1 + 3);
}

TEST(tables_of_a_manifest_are_bounded) {
    _cleanup_(manifest_freep) Manifest *m = made(), *back = NULL;
    _cleanup_(buffer_done) Buffer json = {};

    for (unsigned i = 0; i < 3 * MANIFEST_ANCHORS_MAX; i++) {
        CHECK_OK(manifest_add_anchor(m, &(ClockAnchor){i, i, i}));
        CHECK_OK(pd_coverage_add_gap(&m->coverage, &(PdGap){2 * i, 2 * i + 1, i, PD_GAP_LOST}));
        CHECK_OK(manifest_add_event(m, "event"));
    }
    CHECK_EQ(m->n_anchors, MANIFEST_ANCHORS_MAX);
    CHECK_EQ(m->anchors[m->n_anchors - 1].real_ns, 3 * MANIFEST_ANCHORS_MAX - 1);
    CHECK(m->coverage.n_gaps <= PD_GAPS_MAX);
    CHECK_OK(encode(m, &json));
    CHECK_OK(manifest_decode(buffer_bytes(&json), &back));
}

/* Of a good one in which one piece is another. */
static int decode_with(const char *piece, const char *by) {
    _cleanup_(manifest_freep) Manifest *m = made(), *back = NULL;
    _cleanup_(buffer_done) Buffer json = {}, changed = {};
    char *at;

    if (encode(m, &json) < 0)
        abort();
    buffer_zero(&json, 1);
    at = strstr((char *)json.data, piece);
    if (!at)
        return 1;
    buffer_append(&changed, json.data, (size_t)(at - (char *)json.data));
    buffer_append(&changed, by, strlen(by));
    buffer_append(&changed, at + strlen(piece), strlen(at + strlen(piece)));
    return manifest_decode(buffer_bytes(&changed), &back);
}

TEST(manifests_in_another_form_than_profd_writes_are_refused) {
    static const struct {
        const char *piece, *by;
    } changes[] = {
        {"\"version\":1", "\"version\":2"},
        {"\"version\":1", "\"version\":\"1\""},
        {"\"samples\":20", "\"samples\":-20"},
        {"\"samples\":20", "\"samples\":20.0"},
        {"\"samples\":20", "\"samples\":99999999999999999999"},
        {"\"samples\":20,", ""},
        {"\"first_ns\":400", "\"first_ns\":901"},
        {"\"default\"", "\"../../etc\""},
        {"\"default\"", "\"\""},
        {"\"host\":\"host\"", "\"host\":null"},
        {"\"host\":\"host\"", "\"host\":\"\\\\x0\""},
        {"\"host\":\"host\"", "\"host\":\"\\\\x00\""},
        {"\"host\":\"host\"", "\"host\":\"a\\u0000b\""},
        {"\"layout\":\"directory\"", "\"layout\":\"pipe\""},
        {"\"recovered\"", "\"perfect\""},
        {"\"cpus\":[0,77]", "\"cpus\":[8192]"},
        {"\"cpus\":[0,77]", "\"cpus\":{}"},
        {"[1,3,0,950,400,900]", "[2,3,0,950,400,900]"},
        {"[1,3,0,950,400,900]", "[1,65,0,950,400,900]"},
        {"[1,3,0,950,400,900]", "[1,3,0,950,901,900]"},
        {"[1,3,0,950,400,900]", "[1,3,0,950,400]"},
        {"[1,3,0,950,400,900]", "[1,3,0,950,400,900,1]"},
        {"\"cause\":\"queue\"", "\"cause\":\"fate\""},
        {"\"cpu\":3", "\"cpu\":8192"},
        {"\"from_ns\":5", "\"from_ns\":7"},
        {"\"reason\":\"offline\"", "\"reason\":5"},
        {"\"cpu\":1}", "\"cpu\":8192}"},
        {"\"from_ns\":4", "\"from_ns\":901"},
        {"\"to_ns\":900", "\"to_ns\":-1"},
        {"\"after\":\"stopped\"", "\"after\":null"},
        {"\"cpus\":[77]", "\"cpus\":[8192]"},
        {"\"cpus\":[77]", "\"cpus\":77"},
        {"\"coverage\":{", "\"coverage\":[{"},
        {"\"synchronised\":true", "\"synchronised\":1"},
        {"\"lost\":1", "\"lost\":1,\"lost\":1"},
        {"}\n", "}x"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
        if (decode_with(changes[i].piece, changes[i].by) != -EBADMSG)
            printf("# %s instead of %s\n", changes[i].by, changes[i].piece);
        CHECK_EQ(decode_with(changes[i].piece, changes[i].by), -EBADMSG);
    }
}

TEST(fields_of_a_later_version_are_accepted) {
    CHECK_EQ(decode_with("\"version\":1", "\"version\":1,\"colour\":{\"a\":[1]}"), 0);
}

TEST(a_reason_of_a_later_version_is_unknown) {
    CHECK_EQ(decode_with("\"reason\":\"offline\"", "\"reason\":\"asleep\""), 0);
    CHECK_EQ(decode_with("\"after\":\"stopped\"", "\"after\":\"eaten\""), 0);
}

TEST(the_coverage_of_an_older_manifest_is_unknown) {
    static const char old[] =
        "{\"version\":1,\"session\":\"default\",\"boot\":\"\",\"host\":\"\",\"recorder\":\"\","
        "\"damage\":\"\",\"sequence\":1,\"first_ns\":1,\"last_ns\":2,\"samples\":2,\"raw_bytes\":0,"
        "\"stored_bytes\":0,\"lost\":0,\"throttled_ns\":0,\"throttles\":0,\"inferred\":0,"
        "\"dropped\":0,\"sweeps\":0,\"drain_ns\":0,\"cpu_ns\":0,\"memory_bytes\":0,"
        "\"queue_high_bytes\":0,\"weight\":0,\"completeness\":\"complete\",\"layout\":\"file\","
        "\"synchronised\":true,\"sensitive\":false,\"events\":[],\"cpus\":[],\"anchors\":[],"
        "\"lost_by\":[],\"gaps\":[{\"from_ns\":1,\"to_ns\":2,\"what\":\"the session was paused\"}],"
        "\"index\":[]}";
    _cleanup_(manifest_freep) Manifest *m = NULL;
    PdCoverage coverage;

    CHECK_OK(manifest_decode((Bytes){.data = (const uint8_t *)old, .size = strlen(old)}, &m));
    CHECK(!m->covered);
    CHECK_EQ(m->stacks.whole + m->stacks.bytes, 0);
    CHECK_EQ(manifest_real_coverage(m, &coverage), -ENODATA);
}

TEST_MAIN()
