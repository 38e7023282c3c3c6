/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "send/state-file.h"

#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>

#include "send/file-folder.h"
#include "test.h"
#include "util/file.h"
#include "util/macro.h"

/* What a destination remembers: written, read, and damaged in every way that is easy to think of.
 */

static char folder[] = "/tmp/profd-state-XXXXXX";
static bool is_made;

#define FILE_NAME "there-19700101T000000.000000010Z.pb.gz"

/* Synced folders, and whether the last one had the name of the profile by then. */
static unsigned folder_syncs;
static bool has_name;

int fsync(int fd) {
    struct stat status;

    if (fstat(fd, &status) == 0 && S_ISDIR(status.st_mode)) {
        folder_syncs++;
        has_name = fstatat(fd, FILE_NAME, &status, 0) == 0;
    }
    return 0;
}

static int remove_one(const char *path, const struct stat *status _unused_, int kind _unused_,
                      struct FTW *at _unused_) {
    return remove(path);
}

static void remove_place(void) {
    (void)nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static const char *place(void) {
    if (!is_made)
        is_made = mkdtemp(folder) && atexit(remove_place) == 0;
    return folder;
}

static SendState *some_state(void) {
    SendState *state = calloc(1, sizeof(*state));

    if (!state)
        abort();
    state->live_ns = UINT64_C(1764000000000000000);
    state->high_ns = state->live_ns + 99;
    state->unsent.items[0] = (Range){100, 200};
    state->unsent.items[1] = (Range){300, UINT64_C(1764000000000000000)};
    state->unsent.n = 2;
    state->last_success_ns = 12345;
    state->counters.sent_requests = 7;
    state->counters.repeated_requests = 2;
    state->counters.retries = UINT64_MAX;
    send_state_put_partial(state, &(SendPartial){.range = {100, 200}, .n = 3, .hash = 99});
    return state;
}

static int put(const char *name, const char *text) {
    char path[256];
    int fd;

    snprintf(path, sizeof(path), "%s/%s", place(), name);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (fd < 0 || file_write_all(fd, text, strlen(text)) < 0)
        return -EIO;
    close(fd);
    return 0;
}

static int save(const char *name, const SendState *state) {
    _cleanup_(buffer_done) Buffer text = {};

    return send_state_print(state, &text) ?: state_file_save(place(), name, STATE_SUFFIX, &text);
}

/* A position on the disk says that the file is there, too. */
TEST(profile_in_a_folder_is_synced_with_its_name) {
    const FileFolderItem item = {.name = "there", .since_ns = 10, .number = FILE_FOLDER_WHOLE};
    char path[256];
    struct stat status;

    folder_syncs = 0;
    has_name = false;
    CHECK_OK(file_folder_write(place(), &item, (Bytes){(const uint8_t *)"profile", 7}));
    snprintf(path, sizeof(path), "%s/%s", place(), FILE_NAME);
    CHECK_EQ(stat(path, &status), 0);
    CHECK_EQ(status.st_size, 7);
    CHECK_EQ(folder_syncs, 1);
    CHECK(has_name);
}

TEST(state_comes_back_as_it_was_written) {
    _cleanup_free_ SendState *state = some_state(), *back = calloc(1, sizeof(*back));
    const char *problem = NULL;

    CHECK_OK(save("a", state));
    CHECK_OK(state_file_load(place(), "a", back, &problem));
    CHECK_EQ(back->live_ns, state->live_ns);
    CHECK_EQ(back->high_ns, state->high_ns);
    CHECK_EQ(back->last_success_ns, 12345);
    CHECK_EQ(back->unsent.n, 2);
    CHECK_EQ(back->unsent.items[1].until_ns, state->unsent.items[1].until_ns);
    CHECK_EQ(back->counters.sent_requests, 7);
    CHECK_EQ(back->counters.repeated_requests, 2);
    CHECK_EQ(back->counters.retries, INT64_MAX);
    CHECK_EQ(back->n_partials, 1);
    CHECK_EQ(send_state_partial(back, (Range){100, 200})->n, 3);
}

TEST(full_state_comes_back_too) {
    _cleanup_free_ SendState *state = some_state(), *back = calloc(1, sizeof(*back));
    const char *problem = NULL;

    state->unsent.n = 0;
    for (uint64_t i = 0; i < RANGES_MAX; i++)
        range_list_add(&state->unsent, (Range){UINT64_C(1764000000000000000) + i * 1000,
                                               UINT64_C(1764000000000000000) + i * 1000 + 500});
    CHECK_OK(save("full", state));
    CHECK_OK(state_file_load(place(), "full", back, &problem));
    CHECK_EQ(back->unsent.n, RANGES_MAX);
}

/* clang-format off */
static const char *const damaged[] = {
    "",
    "{",
    "[]",
    "null",
    "{}",
    "{\"version\": 2, \"liveNs\": 1, \"lastSuccessNs\": 0, \"unsent\": [], \"partials\": []}",
    "{\"version\": 1, \"liveNs\": -1, \"lastSuccessNs\": 0, \"unsent\": [], \"partials\": []}",
    "{\"version\": 1, \"liveNs\": 1, \"highNs\": -1, \"lastSuccessNs\": 0, \"unsent\": [], \"partials\": []}",
    "{\"version\": 1, \"liveNs\": \"1\", \"lastSuccessNs\": 0, \"unsent\": [], \"partials\": []}",
    "{\"version\": 1, \"liveNs\": 99999999999999999999, \"lastSuccessNs\": 0, \"unsent\": [], \"partials\": []}",
    "{\"version\": 1, \"liveNs\": 1, \"lastSuccessNs\": 0, \"unsent\": {}, \"partials\": []}",
    "{\"version\": 1, \"liveNs\": 1, \"lastSuccessNs\": 0, \"unsent\": [[2, 1]], \"partials\": []}",
    "{\"version\": 1, \"liveNs\": 1, \"lastSuccessNs\": 0, \"unsent\": [[1, 2, 3]], \"partials\": []}",
    "{\"version\": 1, \"liveNs\": 1, \"lastSuccessNs\": 0, \"unsent\": [[1, 5], [4, 6]], \"partials\": []}",
    "{\"version\": 1, \"liveNs\": 1, \"lastSuccessNs\": 0, \"unsent\": [], \"partials\": [[1, 1, 1, 1]]}",
    "{\"version\": 1, \"liveNs\": 1, \"lastSuccessNs\": 0, \"unsent\": [], \"partials\": [1]}",
    "{\"version\": 1, \"liveNs\": 1, \"lastSuccessNs\": 0, \"unsent\": [], \"partials\": [], \"counters\": {\"retries\": -1}}",
};
/* clang-format on */

TEST(damaged_file_is_set_aside_with_its_reason) {
    _cleanup_free_ SendState *state = calloc(1, sizeof(*state));
    struct stat status;
    char path[256];

    snprintf(path, sizeof(path), "%s/bad.json.damaged", place());
    for (size_t i = 0; i < ARRAY_SIZE(damaged); i++) {
        const char *problem = NULL;

        state->live_ns = 77;
        CHECK_OK(put("bad.json", damaged[i]));
        CHECK_EQ(state_file_load(place(), "bad", state, &problem), -EBADMSG);
        CHECK(problem && problem[0]);
        CHECK_EQ(state->live_ns, 77);
        CHECK_OK(stat(path, &status));
        CHECK_EQ(status.st_size, (off_t)strlen(damaged[i]));
        CHECK_EQ(state_file_load(place(), "bad", state, &problem), -ENOENT);
        CHECK_OK(unlink(path));
    }
}

TEST(huge_file_is_not_read_to_its_end) {
    _cleanup_free_ SendState *state = calloc(1, sizeof(*state));
    const char *problem = NULL;
    char path[256];

    CHECK_OK(put("huge.json", ""));
    snprintf(path, sizeof(path), "%s/huge.json", place());
    CHECK_OK(truncate(path, (off_t)1 << 40));
    CHECK_EQ(state_file_load(place(), "huge", state, &problem), -EBADMSG);
    CHECK(problem != NULL);
    snprintf(path, sizeof(path), "%s/huge.json.damaged", place());
    CHECK_OK(unlink(path));
}

TEST(what_is_no_regular_file_is_no_state) {
    _cleanup_free_ SendState *state = calloc(1, sizeof(*state));
    const char *problem = NULL;
    char path[256];

    snprintf(path, sizeof(path), "%s/link.json", place());
    CHECK_OK(symlink("/dev/zero", path));
    CHECK_EQ(state_file_load(place(), "link", state, &problem), -ELOOP);
    CHECK_OK(unlink(path));
    CHECK(!state_file_is_name("../a") && !state_file_is_name("") && !state_file_is_name(".x"));
    CHECK(state_file_is_name("pyroscope-eu_1"));
}

TEST(requests_in_flight_are_a_number_or_none) {
    _cleanup_close_ int fd = -1;

    CHECK_EQ(state_file_flights(place(), "none"), 0);
    fd = state_file_open_flights(place(), "a");
    CHECK(fd >= 0);
    state_file_put_flights(fd, 300);
    state_file_put_flights(fd, 2);
    CHECK_EQ(state_file_flights(place(), "a"), 2);
    CHECK_OK(put("a.flight", "99999999999"));
    CHECK_EQ(state_file_flights(place(), "a"), 0);
    CHECK_OK(put("a.flight", "1 x"));
    CHECK_EQ(state_file_flights(place(), "a"), 0);
}

TEST(interval_in_progress_is_forgotten_when_it_is_settled) {
    _cleanup_free_ SendState *state = some_state();

    for (uint64_t i = 0; i < 10; i++)
        send_state_put_partial(state,
                               &(SendPartial){.range = {1000 + i * 10, 1010 + i * 10}, .n = i + 1});
    CHECK_EQ(state->n_partials, STATE_PARTIALS_MAX);
    CHECK(!send_state_partial(state, (Range){100, 200}));
    CHECK_EQ(send_state_partial(state, (Range){1090, 1100})->n, 10);
    send_state_settle(state, (Range){1090, 1100});
    CHECK(!send_state_partial(state, (Range){1090, 1100}));
    CHECK_EQ(state->n_partials, STATE_PARTIALS_MAX - 1);
}

TEST_MAIN()
