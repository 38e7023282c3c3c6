/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "s3/s3-object.h"
#include "s3/s3-state.h"
#include "send/state-file.h"
#include "test.h"
#include "util/file.h"
#include "util/macro.h"

/* The state of a destination on the disk, and an object that waits for its upload. */

static char folder[64], path[96];

static void make_folder(void) {
    strcpy(folder, "/tmp/test-s3-state.XXXXXX");
    CHECK(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/archive.s3", folder);
}

static void remove_folder(void) {
    (void)unlink(path);
    CHECK_OK(rmdir(folder));
}

static int save(const S3State *state) {
    _cleanup_(buffer_done) Buffer text = {};

    return s3_state_print(state, &text)
               ?: state_file_save(folder, "archive", S3_STATE_SUFFIX, &text);
}

static void write_file(const char *text) {
    FILE *file = fopen(path, "we");

    CHECK(file);
    fputs(text, file);
    CHECK_EQ(fclose(file), 0);
}

TEST(state_is_read_back_as_it_was_written) {
    _cleanup_(s3_state_done) S3State state = {}, read = {};

    make_folder();
    state.until_ns = UINT64_C(1795557300000000000);
    state.is_multipart = true;
    strcpy(state.key, "web-1/2026/x.perf.data");
    strcpy(state.upload_id, "id-\"~");
    state.counters.objects = 7;
    state.counters.last_success_ns = 9;
    CHECK_OK(s3_state_add_snapshot(&state, "incident", 12345));
    CHECK_EQ(range_list_add(&state.unsent, (Range){300, 600}), 0);
    CHECK_EQ(range_list_add(&state.unsent, (Range){900, 1500}), 0);
    CHECK_OK(save(&state));
    CHECK_OK(s3_state_load(path, &read));
    CHECK_EQ(read.unsent.n, 2);
    CHECK_EQ(read.unsent.items[1].since_ns, 900);
    CHECK_EQ(read.unsent.items[1].until_ns, 1500);
    CHECK_EQ(read.until_ns, state.until_ns);
    CHECK(read.is_multipart);
    CHECK_STREQ(read.key, state.key);
    CHECK_STREQ(read.upload_id, state.upload_id);
    CHECK_EQ(read.counters.objects, 7);
    CHECK_EQ(read.counters.last_success_ns, 9);
    CHECK(s3_state_has_snapshot(&read, "incident", 12345));
    CHECK(!s3_state_has_snapshot(&read, "incident", 12346));
    remove_folder();
}

TEST(missing_state_is_not_a_damaged_one) {
    S3State state = {};

    make_folder();
    CHECK_EQ(s3_state_load(path, &state), -ENOENT);
    remove_folder();
}

TEST(damaged_state_is_recognized) {
    static const char *const texts[] = {
        "", "{", "[]", "{\"version\":2}", "{\"version\":1}", "{\"version\":1,\"until_ns\":-1}",
    };
    S3State state = {};

    make_folder();
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        write_file(texts[i]);
        CHECK_EQ(s3_state_load(path, &state), -EBADMSG);
    }
    remove_folder();
}

TEST(each_member_of_a_state_is_checked) {
    _cleanup_(s3_state_done) S3State state = {};
    static char text[65536], changed[65536];
    static const char *const names[] = {"until_ns", "objects", "key", "upload_id", "snapshots"};

    make_folder();
    CHECK_OK(save(&state));
    CHECK_OK(file_read_text(path, text, sizeof(text)));
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        char *at;

        strcpy(changed, text);
        at = strstr(changed, names[i]);
        CHECK(at);
        at[0] = '_';
        write_file(changed);
        CHECK_EQ(s3_state_load(path, &state), -EBADMSG);
    }
    remove_folder();
}

TEST(list_of_windows_is_checked_and_may_be_that_of_an_earlier_version) {
    static const char *const lists[] = {"[[5,4]]",   "[[1,2],[2,3]]", "[[1]]",
                                        "[[1,2,3]]", "[[-1,2]]",      "[[1,-2]]"};
    _cleanup_(s3_state_done) S3State state = {};
    char text[65536], changed[65536 + 64], *at;

    make_folder();
    CHECK_OK(save(&state));
    CHECK_OK(file_read_text(path, text, sizeof(text)));
    at = strstr(text, "\"unsent\":[]");
    CHECK(at);
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
        snprintf(changed, sizeof(changed), "%.*s\"unsent\":%s%s", (int)(at - text), text, lists[i],
                 at + strlen("\"unsent\":[]"));
        write_file(changed);
        CHECK_EQ(s3_state_load(path, &state), -EBADMSG);
    }
    at[1] = '_';
    write_file(text);
    CHECK_OK(s3_state_load(path, &state));
    CHECK_EQ(state.unsent.n, 0);
    remove_folder();
}

TEST(snapshots_that_profd_has_no_more_are_forgotten) {
    _cleanup_(s3_state_done) S3State state = {};

    CHECK_OK(s3_state_add_snapshot(&state, "a", 1));
    CHECK_OK(s3_state_add_snapshot(&state, "b", 2));
    s3_state_begin_list(&state);
    CHECK(s3_state_has_snapshot(&state, "b", 2));
    s3_state_end_list(&state);
    CHECK_EQ(state.n_done, 1);
    CHECK_STREQ(state.done[0].name, "b");
}

TEST(list_of_snapshots_is_bounded) {
    _cleanup_(s3_state_done) S3State state = {};

    for (unsigned i = 0; i < S3_SNAPSHOTS_MAX; i++)
        CHECK_OK(s3_state_add_snapshot(&state, "a", i));
    CHECK_EQ(s3_state_add_snapshot(&state, "a", S3_SNAPSHOTS_MAX), -ENOSPC);
}

/* Bytes whose value follows from their place, in reads of odd sizes. */
static ssize_t read_pattern(void *userdata, void *to, size_t n) {
    uint64_t *at = userdata;

    n = MIN(n, (size_t)70001);
    for (size_t i = 0; i < n; i++)
        ((uint8_t *)to)[i] = (uint8_t)((*at + i) * 31 >> 3);
    *at += n;
    return (ssize_t)n;
}

static ssize_t read_less(void *userdata, void *to, size_t n) {
    uint64_t *at = userdata;

    return *at > 1000 ? 0 : read_pattern(userdata, to, n);
}

TEST(object_up_to_a_part_stays_in_memory) {
    S3Object object;
    S3Part part;
    uint64_t at = 0;

    CHECK_OK(s3_object_read("/nonexistent", S3_PART_BYTES, read_pattern, &at, &object));
    CHECK_EQ(object.fd, -1);
    CHECK_EQ(object.n_parts, 1);
    CHECK_OK(s3_object_part(&object, 0, &part));
    CHECK_EQ(part.bytes.size, S3_PART_BYTES);
    s3_part_done(&part);
    s3_object_done(&object);
}

TEST(parts_of_a_larger_object_are_its_bytes_in_order) {
    const uint64_t size = 2 * S3_PART_BYTES + 12345;
    uint64_t at = 0, seen = 0;
    S3Object object;
    S3Part part;

    make_folder();
    CHECK_OK(s3_object_read(folder, size, read_pattern, &at, &object));
    CHECK(object.fd >= 0);
    CHECK_EQ(object.n_parts, 3);
    for (unsigned i = 0; i < object.n_parts; i++) {
        char hash[S3_HASH_MAX];

        CHECK_OK(s3_object_part(&object, i, &part));
        for (size_t k = 0; k < part.bytes.size; k++)
            CHECK(part.bytes.data[k] == (uint8_t)((seen + k) * 31 >> 3));
        s3_hash(part.bytes, hash);
        CHECK_STREQ(part.hash, hash);
        seen += part.bytes.size;
        s3_part_done(&part);
    }
    CHECK_EQ(seen, size);
    s3_object_done(&object);
    remove_folder();
}

TEST(object_that_ends_early_is_an_error) {
    uint64_t at = 0;
    S3Object object;

    CHECK_EQ(s3_object_read("/tmp", 100000, read_less, &at, &object), -EPIPE);
    CHECK_EQ(s3_object_read("/tmp", UINT64_MAX / 2, read_pattern, &at, &object), -EFBIG);
}

TEST(empty_object_is_one_part) {
    uint64_t at = 0;
    S3Object object;
    S3Part part;

    CHECK_OK(s3_object_read("/tmp", 0, read_pattern, &at, &object));
    CHECK_EQ(object.n_parts, 1);
    CHECK_OK(s3_object_part(&object, 0, &part));
    CHECK_STREQ(part.hash, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    s3_part_done(&part);
    s3_object_done(&object);
}

TEST_MAIN()
