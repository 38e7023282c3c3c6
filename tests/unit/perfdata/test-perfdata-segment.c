/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>

#include "perfdata/feature/environment.h"
#include "perfdata/reader/reader.h"
#include "util/file.h"

#include "make-recording.h"

/* A recording that was cut anywhere is mended, and holds every whole record before the cut. */

enum { DATA_OFFSET = 104 + 16 + 80, N_SAMPLES = 30 };

static const struct {
    int level;
    bool swap;
} variants[] = {{0, false}, {0, true}, {3, false}, {3, true}};

/* An unfinished file: a mapping, samples with times from 100 on, a flush now and then. */
static int make_unfinished(int fd, int level, bool swap, bool finish) {
    _cleanup_(pd_writer_freep) PdWriter *w = NULL;
    PdWriterOptions options = {.layout = PD_LAYOUT_FILE, .swap = swap, .zstd_level = level};
    PdEvent event = made_event();
    int r = pd_writer_new(fd, &options, &w);

    if (r >= 0)
        r = pd_writer_add_event(w, &event);
    if (r >= 0)
        r = pd_writer_begin(w);
    for (unsigned i = 0; r >= 0 && i < N_SAMPLES; i++) {
        _cleanup_(buffer_done) Buffer b = {};

        if (i == 0)
            put_mmap(&b, "/bin/a", 1, 50, swap);
        put_sample(&b, 100 + i, swap);
        r = pd_writer_write(w, 0, b.data, b.size);
        if (r >= 0 && i % 10 == 9)
            r = pd_writer_flush(w);
    }
    return r >= 0 && finish ? pd_writer_finish(w) : r;
}

/* The records that should be left of the first `size` bytes: whole ones, unpacked. */
static unsigned whole_records_in(const uint8_t *p, size_t size, bool swap, uint64_t *ret_end) {
    unsigned n = 0, per_frame = 10;
    size_t at = DATA_OFFSET;

    while (size - at >= 8) {
        size_t k = load_u16(p + at + 6, swap);

        if (k < 8 || k > size - at)
            break;
        n += load_u32(p + at, swap) == PD_RECORD_COMPRESSED ? per_frame + (n == 0) : 1;
        at += k;
    }
    *ret_end = at;
    return n;
}

static void check_mended(int fd, bool swap, unsigned n, uint64_t end) {
    _cleanup_(pd_reader_freep) PdReader *reader = NULL;
    PdRecord record;
    unsigned n_read = 0, n_made = 0;
    Bytes body;

    CHECK_OK(pd_reader_open_fd(dup(fd), NULL, &reader, NULL));
    CHECK(!pd_reader_header(reader)->unfinished);
    CHECK_EQ(pd_reader_header(reader)->swap, swap);
    while (pd_reader_next(reader, &record) > 0)
        n_read += record.type != PD_RECORD_FINISHED_INIT;
    CHECK(!pd_reader_damage(reader));
    CHECK_EQ(n_read, n);
    n_made = end == DATA_OFFSET ? 8 : 0;
    CHECK_EQ(pd_reader_header(reader)->data_size, end - DATA_OFFSET + n_made);
    CHECK_EQ(pd_events_count(pd_reader_events(reader)), (size_t)1);
    CHECK_EQ(pd_events_at(pd_reader_events(reader), 0)->n_ids, (size_t)2);
    CHECK_OK(pd_reader_feature(reader, PD_FEATURE_EVENT_DESC, &body));
    CHECK_OK(pd_reader_feature(reader, PD_FEATURE_HOSTNAME, &body));
    CHECK(!pd_reader_has_feature(reader, PD_FEATURE_GROUP_DESC));
    CHECK_EQ(pd_reader_has_feature(reader, PD_FEATURE_BUILD_ID), n > 0);
    CHECK_EQ(pd_reader_has_feature(reader, PD_FEATURE_SAMPLE_TIME), n > 1);
    if (n < 2)
        return;
    CHECK_OK(pd_reader_feature(reader, PD_FEATURE_SAMPLE_TIME, &body));
    CHECK_EQ(load_u64(body.data, swap), (uint64_t)100);
    CHECK_EQ(load_u64(body.data + 8, swap), (uint64_t)100 + n - 2);
}

static int an_environment(PdEnvironment **ret) {
    int r = pd_environment_new(ret);

    if (r < 0)
        return r;
    (*ret)->hostname = strdup("mended");
    (*ret)->has[PD_FEATURE_HOSTNAME] = true;
    return 0;
}

static void check_every_cut(int level, bool swap) {
    _cleanup_(pd_environment_freep) PdEnvironment *env = NULL;
    _cleanup_close_ int whole = memory_file();
    _cleanup_free_ uint8_t *p = NULL;
    Bytes all;

    CHECK_OK(an_environment(&env));
    CHECK_OK(make_unfinished(whole, level, swap, false));
    all = whole_file(whole);
    p = (uint8_t *)all.data;
    for (size_t cut = 0; cut <= all.size && !test_failed; cut++) {
        _cleanup_close_ int fd = memory_file();
        PdRecovery did;
        uint64_t end;
        unsigned n;
        int r;

        CHECK_OK(file_write_all_at(fd, p, cut, 0));
        r = pd_segment_recover(fd, PD_LAYOUT_FILE, env, &did);
        if (cut < DATA_OFFSET) {
            _cleanup_free_ const uint8_t *left = whole_file(fd).data;

            CHECK_EQ(r, -EBADMSG);
            CHECK_EQ(lseek(fd, 0, SEEK_END), (off_t)cut);
            CHECK(memcmp(left, p, cut) == 0);
            continue;
        }
        CHECK_OK(r);
        n = whole_records_in(p, cut, swap, &end);
        CHECK_EQ(did.records, (uint64_t)n);
        CHECK_EQ(did.kept_bytes, end - DATA_OFFSET);
        CHECK_EQ(did.cut_bytes, cut - end);
        CHECK_EQ(did.damage[0] == '\0', cut == end);
        check_mended(fd, swap, n, end);
        CHECK_EQ(pd_segment_recover(fd, PD_LAYOUT_FILE, env, &did), -EALREADY);
    }
}

TEST(a_file_truncated_at_any_byte_keeps_its_events_and_every_whole_record) {
    for (size_t i = 0; i < ARRAY_SIZE(variants); i++)
        check_every_cut(variants[i].level, variants[i].swap);
}

TEST(a_file_whose_writer_died_at_the_end_loses_nothing) {
    for (size_t i = 0; i < ARRAY_SIZE(variants); i++) {
        _cleanup_(pd_environment_freep) PdEnvironment *env = NULL;
        _cleanup_close_ int whole = memory_file();
        _cleanup_free_ uint8_t *p = NULL;
        uint64_t data_end;
        Bytes all;

        CHECK_OK(an_environment(&env));
        CHECK_OK(make_unfinished(whole, variants[i].level, variants[i].swap, false));
        data_end = (uint64_t)lseek(whole, 0, SEEK_END);
        CHECK_OK(pd_segment_recover(whole, PD_LAYOUT_FILE, env, &(PdRecovery){}));
        all = whole_file(whole);
        p = (uint8_t *)all.data;
        memset(p + 48, 0, 8); /* data.size: the header was still to be written */
        memset(p + 72, 0, 32);
        for (size_t cut = data_end; cut <= all.size && !test_failed; cut += 3) {
            _cleanup_close_ int fd = memory_file();
            PdRecovery did;

            CHECK_OK(file_write_all_at(fd, p, cut, 0));
            CHECK_OK(pd_segment_recover(fd, PD_LAYOUT_FILE, env, &did));
            CHECK_EQ(did.records, (uint64_t)1 + N_SAMPLES);
            check_mended(fd, variants[i].swap, 1 + N_SAMPLES, data_end);
        }
    }
}

TEST(a_page_of_zeros_ends_the_data) {
    for (size_t i = 0; i < ARRAY_SIZE(variants); i++) {
        _cleanup_close_ int fd = memory_file();
        uint8_t zeros[64] = {};
        _cleanup_free_ uint8_t *p = NULL;
        PdRecovery did;
        uint64_t end;
        unsigned n;
        Bytes all;

        CHECK_OK(make_unfinished(fd, variants[i].level, variants[i].swap, false));
        all = whole_file(fd);
        p = (uint8_t *)all.data;
        CHECK_OK(file_write_all_at(fd, zeros, sizeof(zeros), all.size - sizeof(zeros)));
        n = whole_records_in(p, all.size - sizeof(zeros), variants[i].swap, &end);
        CHECK_OK(pd_segment_recover(fd, PD_LAYOUT_FILE, NULL, &did));
        /* A plain record may well hold zeros; what is kept is told, and all before it is there. */
        CHECK(did.records == n || (variants[i].level == 0 && did.records == n + 1));
        CHECK(did.damage[0] != '\0');
    }
}

TEST(recovery_does_not_touch_other_files) {
    _cleanup_close_ int fd = memory_file(), other = memory_file();
    uint8_t stream[64] = {81, 0, 0, 0, 0, 0, 64, 0, 0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58};
    char junk[400];
    PdRecovery did;

    memset(junk, 'x', sizeof(junk));
    CHECK_OK(file_write_all_at(fd, junk, sizeof(junk), 0));
    CHECK_EQ(pd_segment_recover(fd, PD_LAYOUT_FILE, NULL, &did), -EBADMSG);
    CHECK_EQ(lseek(fd, 0, SEEK_END), (off_t)sizeof(junk));
    CHECK_EQ(pd_segment_recover(fd, PD_LAYOUT_PIPE, NULL, &did), -EINVAL);

    /* One endless stream, of which no frame says how much it holds. */
    CHECK_OK(make_unfinished(other, 0, false, false));
    CHECK_OK(file_write_all_at(other, stream, sizeof(stream), DATA_OFFSET));
    CHECK_EQ(pd_segment_recover(other, PD_LAYOUT_FILE, NULL, &did), -EBADMSG);
    CHECK_EQ(lseek(other, 0, SEEK_END), (off_t)(DATA_OFFSET + 112 + N_SAMPLES * 40));
}

TEST(recovery_of_any_bytes_leaves_only_whole_records) {
    uint64_t state = 1;

    for (unsigned i = 0; i < 4000 && !test_failed; i++) {
        _cleanup_(pd_reader_freep) PdReader *reader = NULL;
        _cleanup_close_ int fd = memory_file();
        bool swap = variants[i % ARRAY_SIZE(variants)].swap;
        PdRecovery did;
        PdRecord record;

        CHECK_OK(make_unfinished(fd, variants[i % ARRAY_SIZE(variants)].level, swap, false));
        for (unsigned k = 0; k < 1 + i % 3; k++) {
            uint64_t size = (uint64_t)lseek(fd, 0, SEEK_END), at;

            state = state * 6364136223846793005ULL + 1442695040888963407ULL;
            at = (state >> 33) % size;
            at = i % 4 ? DATA_OFFSET + at % (size - DATA_OFFSET) : at;
            CHECK_OK(file_write_all_at(fd, (uint8_t *)&state + 3, 1 + i % 4, at));
        }
        if (pd_segment_recover(fd, PD_LAYOUT_FILE, NULL, &did) < 0)
            continue;
        CHECK_OK(pd_reader_open_fd(dup(fd), NULL, &reader, NULL));
        CHECK(!pd_reader_header(reader)->unfinished);
        for (uint64_t n = 0; pd_reader_next(reader, &record) > 0; n++)
            CHECK(n < did.records || record.type == PD_RECORD_FINISHED_INIT);
        CHECK(!pd_reader_damage(reader));
    }
}

static int make_folder(char *folder, int level) {
    _cleanup_(pd_writer_freep) PdWriter *w = NULL;
    _cleanup_close_ int fd = mkdtemp(folder) ? open(folder, O_DIRECTORY | O_CLOEXEC) : -1;
    PdWriterOptions options = {.layout = PD_LAYOUT_DIRECTORY, .zstd_level = level, .n_files = 2};
    PdEvent event = made_event();
    int r = fd < 0 ? -errno : pd_writer_new(fd, &options, &w);

    if (r >= 0)
        r = pd_writer_add_event(w, &event);
    if (r >= 0)
        r = pd_writer_begin(w);
    for (unsigned i = 0; r >= 0 && i < N_SAMPLES; i++) {
        _cleanup_(buffer_done) Buffer b = {};

        put_sample(&b, 100 + i, false);
        r = pd_writer_write(w, i % 3, b.data, b.size);
    }
    return r >= 0 ? pd_writer_flush(w) : r;
}

static void check_folder(int level) {
    _cleanup_(pd_reader_freep) PdReader *reader = NULL;
    char folder[] = "/tmp/segment-XXXXXX", path[64];
    _cleanup_close_ int fd = -1;
    unsigned n = 0;
    PdRecovery did;
    PdRecord record;

    CHECK_OK(make_folder(folder, level));
    fd = open(folder, O_DIRECTORY | O_CLOEXEC);
    snprintf(path, sizeof(path), "%s/data.1", folder);
    CHECK_OK(truncate(path, level ? 20 : 399));
    CHECK_OK(pd_segment_recover(fd, PD_LAYOUT_DIRECTORY, NULL, &did));
    CHECK_EQ(did.records, (uint64_t)(level ? 20 : 29));
    CHECK_EQ(strncmp(did.damage, "data.1: ", 8), 0);
    CHECK_OK(pd_reader_open(folder, NULL, &reader, NULL));
    CHECK(!pd_reader_header(reader)->unfinished);
    CHECK_EQ(pd_reader_header(reader)->n_files, 3U);
    while (pd_reader_next(reader, &record) > 0)
        n++;
    CHECK(!pd_reader_damage(reader));
    CHECK_EQ(n, (unsigned)did.records);
    CHECK(pd_reader_has_feature(reader, PD_FEATURE_DIR_FORMAT));
    CHECK_EQ(pd_reader_has_feature(reader, PD_FEATURE_COMPRESSED), level > 0);
    CHECK_EQ(pd_segment_recover(fd, PD_LAYOUT_DIRECTORY, NULL, &did), -EALREADY);
    snprintf(path, sizeof(path), "rm -r %s", folder);
    CHECK_EQ(system(path), 0);
}

TEST(a_directory_is_recovered_file_by_file) {
    check_folder(0);
    check_folder(3);
}

static int add_event(PdWriter *w, uint64_t id, uint64_t config, uint64_t flags) {
    uint64_t ids[] = {id};
    PdEvent event = made_event();

    event.attr.config = config;
    event.attr.flags |= flags;
    event.ids = ids;
    event.n_ids = 1;
    return pd_writer_add_event(w, &event);
}

/* An event alone, a group of three, a group of two, side-band. */
static int make_unfinished_groups(int fd, bool swap) {
    static const bool leads[] = {true, true, false, false, true, false};
    _cleanup_(pd_writer_freep) PdWriter *w = NULL;
    PdWriterOptions options = {.layout = PD_LAYOUT_FILE, .swap = swap};
    int r = pd_writer_new(fd, &options, &w);

    for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(leads); i++)
        r = add_event(w, 20 + i, i, leads[i] ? PD_ATTR_DISABLED : 0);
    if (r >= 0)
        r = add_event(w, 40, 9, 0);
    if (r >= 0)
        r = pd_writer_begin(w);
    return r < 0 ? r : pd_writer_flush(w);
}

TEST(groups_of_an_unfinished_file_are_recovered) {
    for (unsigned swap = 0; swap < 2; swap++) {
        _cleanup_(pd_environment_freep) PdEnvironment *env = NULL, *mended = NULL;
        _cleanup_(pd_reader_freep) PdReader *reader = NULL;
        _cleanup_close_ int fd = memory_file();
        PdRecovery did;
        Bytes body;

        CHECK_OK(an_environment(&env));
        CHECK_OK(make_unfinished_groups(fd, swap));
        CHECK_OK(pd_segment_recover(fd, PD_LAYOUT_FILE, env, &did));
        CHECK_OK(pd_reader_open_fd(dup(fd), NULL, &reader, NULL));
        CHECK_OK(pd_reader_feature(reader, PD_FEATURE_GROUP_DESC, &body));
        CHECK_OK(pd_environment_new(&mended));
        CHECK_OK(pd_environment_read(mended, PD_FEATURE_GROUP_DESC, body, swap));
        CHECK_EQ(mended->n_groups, 2U);
        CHECK_EQ(mended->groups[0].leader, 1U);
        CHECK_EQ(mended->groups[0].n_members, 3U);
        CHECK_EQ(mended->groups[1].leader, 4U);
        CHECK_EQ(mended->groups[1].n_members, 2U);
    }
}

TEST_MAIN()
