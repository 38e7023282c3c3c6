/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "make-scene.h"

#include <glob.h>
#include <jansson.h>

#include "store/window/listing.h"

/*
 * A store that somebody else had a hand in: manifests that lie, links that lead out of it, things
 * that are no files. Whatever is listed or cut out of it comes from inside, no sample comes twice,
 * and what is missing is told.
 */

enum { SEGMENTS = 3, PER_SEGMENT = 2 * SAMPLES };

/* Its segments closed, as an earlier daemon left them. */
static int scene_leave(Scene *s, Way way) {
    int r = scene_init(s);

    if (r == 0)
        r = scene_record(s, way, SEGMENTS);
    store_session_close(s->session);
    s->session = NULL;
    return r;
}

static int scene_again(Scene *s) {
    int r;

    s->engine = snapshot_engine_free(s->engine);
    r = place_again(&s->place);
    return r == 0 ? snapshot_engine_new(s->place.store, s->loop, s->housekeeper, &s->engine) : r;
}

static int count_segment(void *userdata, const StoreSegmentInfo *info) {
    ++*(unsigned *)userdata;
    return 0;
}

static int list_all(Scene *s, unsigned *ret) {
    *ret = 0;
    return store_each_segment(s->place.store, "default", 0, 0, count_segment, ret);
}

/* The manifest of the segment in the middle. */
static int manifest_path(const Scene *s, Way way, char ret[512]) {
    glob_t found = {};
    char pattern[256];
    int r;

    snprintf(pattern, sizeof(pattern), "%s/sessions/default/00000002-*%s", s->place.path,
             way.layout == LAYOUT_FILE ? ".json" : "/manifest.json");
    r = glob(pattern, 0, NULL, &found) == 0 && found.gl_pathc == 1 ? 0 : -ENOENT;
    if (r == 0)
        snprintf(ret, 512, "%s", found.gl_pathv[0]);
    globfree(&found);
    return r;
}

typedef struct Lie {
    const char *member; /* of the manifest, or NULL: */
    int field;          /* of each entry of its index */
    json_int_t value;
    bool is_left_out; /* the whole segment */
} Lie;

/* clang-format off */
static const Lie lies[] = {
    { NULL,        0, STORE_SAMPLES,   false }, /* kind */
    { NULL,        0, STORE_SIDE_BAND, false },
    { NULL,        1, 5,               false }, /* file */
    { NULL,        1, 64,              false },
    { NULL,        2, 0,               false }, /* offset */
    { NULL,        2, 1,               false },
    { NULL,        2, INT64_MAX,       false },
    { NULL,        3, 0,               false }, /* bytes */
    { NULL,        3, 1,               false },
    { NULL,        3, INT64_MAX,       false },
    { NULL,        4, 0,               false }, /* times */
    { NULL,        5, INT64_MAX,       false },
    { "first_ns",  0, 0,               false },
    { "last_ns",   0, INT64_MAX,       false },
    { "samples",   0, INT64_MAX,       false },
    { "samples",   0, 0,               false },
    { "raw_bytes", 0, INT64_MAX,       false },
    { "sequence",  0, 1,               true  },
    { "sequence",  0, INT64_MAX,       true  },
};
/* clang-format on */

static int tell_lie(const char *path, const Lie *lie) {
    json_t *json = json_load_file(path, 0, NULL), *index = json_object_get(json, "index");
    int r = json ? 0 : -EBADMSG;

    if (json && lie->member)
        r = json_object_set_new(json, lie->member, json_integer(lie->value));
    for (size_t i = 0; r == 0 && !lie->member && i < json_array_size(index); i++)
        r = json_array_set_new(json_array_get(index, i), (size_t)lie->field,
                               json_integer(lie->value));
    if (r == 0)
        r = json_dump_file(json, path, JSON_COMPACT);
    json_decref(json);
    return r;
}

static void check_lie(Way way, const Lie *lie) {
    _cleanup_(scene_done) Scene s;
    SnapshotRequest wanted = request("all");
    char path[512];
    unsigned listed;

    CHECK_OK(scene_leave(&s, way));
    CHECK_OK(manifest_path(&s, way, path));
    CHECK_OK(tell_lie(path, lie));
    CHECK_OK(scene_again(&s));
    CHECK_OK(list_all(&s, &listed));
    CHECK_EQ(listed, SEGMENTS);
    CHECK_OK(make(&s, &wanted));
    CHECK(!s.failed);
    CHECK(s.info.samples >= (SEGMENTS - 1) * PER_SEGMENT);
    CHECK(s.info.samples <= SEGMENTS * PER_SEGMENT);
    if (lie->is_left_out)
        CHECK_EQ(s.info.samples, (SEGMENTS - 1) * PER_SEGMENT);
    CHECK_EQ(count_read(s.path), s.info.samples);
    CHECK_EQ(count_left(&s), 2);
}

TEST(a_wrong_manifest_adds_no_samples) {
    for (size_t i = 0; i < ARRAY_SIZE(ways); i++)
        for (size_t k = 0; k < ARRAY_SIZE(lies) && !test_failed; k++) {
            check_lie(ways[i], &lies[k]);
            if (test_failed)
                printf("# way %zu, lie %zu\n", i, k);
        }
}

/* The change to the segment in the middle ($1) and to its like outside ($2). */
/* clang-format off */
static const struct {
    Way         way;
    const char *done;
} deeds[] = {
    { { LAYOUT_FILE, 3 },      "mv \"$1\" \"$2\" && ln -s \"$2\" \"$1\""                          },
    { { LAYOUT_FILE, 3 },      "rm \"$1\" && mkfifo \"$1\""                                       },
    { { LAYOUT_FILE, 3 },      "rm \"$1\" && mkdir \"$1\""                                        },
    { { LAYOUT_FILE, 3 },      "j=${1%.perf.data}.json; mv $j \"$2\" && ln -s \"$2\" $j"           },
    { { LAYOUT_FILE, 3 },      "j=${1%.perf.data}.json; rm $j && mkfifo $j"                        },
    { { LAYOUT_FILE, 3 },      "j=${1%.perf.data}.json; sed -i s,default,../../x, $j"              },
    { { LAYOUT_DIRECTORY, 3 }, "mv \"$1\" \"$2\" && ln -s \"$2\" \"$1\""                          },
    { { LAYOUT_DIRECTORY, 3 }, "mv $1/data \"$2\" && ln -s \"$2\" $1/data"                         },
    { { LAYOUT_DIRECTORY, 3 }, "mv $1/manifest.json \"$2\" && ln -s \"$2\" $1/manifest.json"       },
    { { LAYOUT_DIRECTORY, 3 }, "rm -r \"$1\" && echo x > \"$1\""                                  },
};
/* clang-format on */

TEST(links_leaving_the_store_and_special_files_are_ignored) {
    for (size_t i = 0; i < ARRAY_SIZE(deeds); i++) {
        _cleanup_(scene_done) Scene s;
        SnapshotRequest wanted = request("all");
        unsigned listed;

        CHECK_OK(scene_leave(&s, deeds[i].way));
        CHECK_OK(
            shell("cd %s/sessions/default && set -- $PWD/00000002-*.perf.data %s/outside && %s",
                  s.place.path, s.place.folder, deeds[i].done));
        CHECK_OK(scene_again(&s));
        CHECK_OK(list_all(&s, &listed));
        CHECK(listed == SEGMENTS || listed == SEGMENTS - 1);
        CHECK_OK(make(&s, &wanted));
        CHECK(!s.failed);
        if (s.info.samples != (SEGMENTS - 1) * PER_SEGMENT)
            printf("# deed %zu\n", i);
        CHECK_EQ(s.info.samples, (SEGMENTS - 1) * PER_SEGMENT);
        CHECK_EQ(count_read(s.path), s.info.samples);
    }
}

TEST(a_link_leaving_the_folder_is_reported_as_damage) {
    _cleanup_(scene_done) Scene s;
    SnapshotRequest wanted = request("all");

    CHECK_OK(scene_leave(&s, ways[2]));
    CHECK_OK(shell("cd %s/sessions/default/00000002-*.perf.data && mv data.0 %s/outside && "
                   "ln -s %s/outside data.0",
                   s.place.path, s.place.folder, s.place.folder));
    CHECK_OK(scene_again(&s));
    CHECK_OK(make(&s, &wanted));
    CHECK(!s.failed);
    CHECK(s.info.samples < SEGMENTS * PER_SEGMENT);
    CHECK(s.info.n_partial > 0 && strstr(s.info.partial[0], "00000002"));
    CHECK_EQ(count_read(s.path), s.info.samples);
}

enum { MANY = 70, AT_ONCE = 64, FEW = 10 };

static int record_many(Scene *s) {
    SessionConfig config = store_session("default", LAYOUT_FILE, 3);
    int r = store_session_new(s->place.store, &config, false, &s->session);

    for (unsigned i = 0; r == 0 && i < MANY; i++) {
        r = begin_segment(&s->place, s->session);
        if (r == 0)
            r = write_samples(s->session, 0, clock_anchor_now().monotonic_ns, FEW);
        if (r == 0)
            r = end_sweep(s->session, ++s->sweep);
    }
    store_session_close(s->session);
    s->session = NULL;
    return r;
}

/* Called while it is built: all that was recorded goes. */
static int take_away(void *userdata, uint64_t bytes) {
    const Scene *s = userdata;

    (void)bytes;
    return shell("rm -f %s/sessions/default/*.perf.data", s->place.path) == 0 ? 0 : -EIO;
}

static void ignore_progress(void *userdata) {
    (void)userdata;
}

TEST(segments_that_vanish_during_a_build_are_reported) {
    _cleanup_(scene_done) Scene s;
    _cleanup_close_ int fd = -1;
    BuildProgress progress = {};
    Build build = {.query = {.session = "default"},
                   .output = {.zstd_level = 3},
                   .progress = &progress,
                   .on_bytes = take_away,
                   .on_progress = ignore_progress,
                   .userdata = &s};
    SnapshotFailure why;
    BuildResult result;
    char path[128];

    CHECK_OK(scene_init(&s));
    CHECK_OK(record_many(&s));
    build.store = s.place.store;
    snprintf(path, sizeof(path), "%s/built", s.place.folder);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    CHECK_OK(snapshot_build(&build, fd, &result, &why));
    /* The segments that were open then are there. */
    CHECK_EQ(result.samples, AT_ONCE * FEW);
    CHECK_EQ(count_read(path), AT_ONCE * FEW);
    CHECK_EQ(result.n_partial, MANY - AT_ONCE);
    CHECK(strstr(result.partial[0], "00000065 was deleted"));
}

TEST(a_window_from_before_the_boot_is_partial) {
    _cleanup_(scene_done) Scene s;
    SnapshotRequest wanted = request("mine");
    char boot[STORE_BOOT_SIZE];

    CHECK_OK(scene_init(&s));
    memcpy(boot, s.place.store->boot, sizeof(boot));
    strcpy(s.place.store->boot, "before");
    CHECK_OK(scene_record(&s, ways[0], 1));
    s.session = store_session_close(s.session);
    memcpy(s.place.store->boot, boot, sizeof(boot));
    CHECK_OK(scene_record(&s, ways[0], 1));
    CHECK_OK(make(&s, &wanted));
    CHECK(!s.failed);
    CHECK_EQ(s.info.samples, PER_SEGMENT);
    CHECK_EQ(s.info.n_partial, 1);
    wanted.name = "within";
    wanted.since_ns = s.first_ns[0];
    CHECK_OK(make(&s, &wanted));
    CHECK(!s.failed);
    CHECK_EQ(s.info.samples, PER_SEGMENT);
    CHECK_EQ(s.info.n_partial, 0);
}

/* The clock was a day behind for four segments, and was set right again. */
TEST(a_clock_that_was_wrong_for_a_while_hides_nothing_older) {
    enum { ALL = 6 };
    const uint64_t day_ns = 86400000000000;
    _cleanup_(scene_done) Scene s;
    _cleanup_(window_freep) Window *window = NULL;
    SnapshotFailure why;
    WindowQuery query = {.session = "default"};
    Folder *folder;

    CHECK_OK(scene_init(&s));
    CHECK_OK(scene_record(&s, ways[0], ALL));
    s.session = store_session_close(s.session);
    folder = store_folder(s.place.store, "default");
    CHECK(folder && folder->n_entries == ALL);
    for (size_t i = 0; i < ALL; i++) {
        Entry *entry = &folder->entries[i];

        CHECK(entry->is_known);
        if (i == 0)
            query.since_ns = entry->first_real_ns;
        query.until_ns = entry->last_real_ns + 1;
        if (i == 0 || i == ALL - 1)
            continue;
        entry->first_real_ns -= day_ns;
        entry->last_real_ns -= day_ns;
        entry->real_shift_ns -= day_ns;
    }
    CHECK_OK(window_new(s.place.store, &query, &window, &why));
    CHECK_EQ(window->n_parts, 2);
    CHECK_EQ(window->parts[0].name.number, 1);
    CHECK_EQ(window->parts[1].name.number, ALL);
}

TEST(links_in_the_snapshot_folder_are_ignored) {
    _cleanup_(scene_done) Scene s;
    SnapshotRequest wanted = request("mine");
    SnapshotInfo info;
    int fd;
    uint64_t bytes;

    CHECK_OK(scene_leave(&s, ways[0]));
    CHECK_OK(make(&s, &wanted));
    CHECK_OK(shell(
        "cd %s && echo secret > outside && ln -s $PWD/outside store/snapshots/link.perf.data && "
        "mkdir store/snapshots/folder.perf.data && "
        "ln -s $PWD/outside store/snapshots/folder.perf.data/data && "
        "mv store/snapshots/mine.json . && ln -s $PWD/mine.json store/snapshots/mine.json",
        s.place.folder));
    CHECK_OK(scene_again(&s));
    CHECK_EQ(snapshot_find(s.engine, "link", &info), -ENOENT);
    /* It has lost its manifest, since that is not its own. */
    CHECK_OK(snapshot_find(s.engine, "mine", &info));
    CHECK(info.sensitive && info.pinned);
    CHECK_OK(snapshot_find(s.engine, "folder", &info));
    CHECK_EQ(snapshot_open_file(s.engine, &info, "data", &fd, &bytes), -EBADMSG);
    CHECK_OK(remove_snapshot(&s, "folder"));
    /* A name in the way is never written through. */
    CHECK_OK(shell("ln -s %s/outside %s/snapshots/.other.part", s.place.folder, s.place.path));
    wanted.name = "other";
    CHECK_OK(make(&s, &wanted));
    CHECK(s.failed);
    CHECK_EQ(s.failure.error, SNAPSHOT_EXISTS);
    wanted.name = "link";
    CHECK_OK(make(&s, &wanted));
    CHECK(s.failed);
    CHECK_EQ(s.failure.error, SNAPSHOT_EXISTS);
    CHECK_OK(shell("test \"$(cat %s/outside)\" = secret", s.place.folder));
}

/* clang-format off */
static const struct {
    const char *piece, *by;
} forgeries[] = {
    { "\\\"mine\\\"",       "\\\"..\\/..\\/mine\\\""                },
    { "\\\"mine\\\"",       "\\\"other\\\""                         },
    { "\\\"layout\\\"",     "\\\"shape\\\""                         },
    { "\\\"uid\\\": 77",    "\\\"uid\\\": -1"                       },
    { "\\\"uid\\\": 77",    "\\\"uid\\\": 4294967296"               },
    { "\\\"partial\\\": ",  "\\\"partial\\\": [[[[[[[[1]]]]]]]], "  },
    { "\\\"samples\\\": ",  "\\\"samples\\\": 1e3, \\\"x\\\": "     },
    { "\\\"version\\\": 1", "\\\"version\\\": 2"                    },
};
/* clang-format on */

TEST(a_forged_manifest_of_a_snapshot_grants_no_access) {
    for (size_t i = 0; i < ARRAY_SIZE(forgeries); i++) {
        _cleanup_(scene_done) Scene s;
        SnapshotRequest wanted = request("mine");
        SnapshotInfo info;

        CHECK_OK(scene_leave(&s, ways[0]));
        wanted.uid = 77;
        CHECK_OK(make(&s, &wanted));
        CHECK_OK(shell("sed -i \"s/%s/%s/\" %s/snapshots/mine.json", forgeries[i].piece,
                       forgeries[i].by, s.place.path));
        CHECK_OK(scene_again(&s));
        CHECK_OK(snapshot_find(s.engine, "mine", &info));
        CHECK(info.sensitive && info.pinned);
        CHECK_EQ(info.uid, 0);
        CHECK_STREQ(info.reason, "Its manifest is lost");
    }
}

TEST_MAIN()
