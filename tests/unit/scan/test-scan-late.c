/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "scan/late.h"

#include <fcntl.h>

#include "keeper-stand-in.h"
#include "scan/process.h"
#include "test.h"
#include "util/clock.h"

/* Processes that do not let their maps be read, and who waits for whom. */

#define SECOND NS_PER_SECOND

TEST(processes_are_late_once_and_in_turn) {
    LateProcesses late = {};
    uint32_t pid = 0;

    CHECK(!late_take(&late, &pid));
    late_add(&late, 10);
    late_add(&late, 20);
    late_add(&late, 10);
    CHECK(late_has(&late, 10) && late_has(&late, 20) && !late_has(&late, 30));
    CHECK(late_take(&late, &pid));
    CHECK_EQ(pid, 10U);
    CHECK(!late_has(&late, 10));
    late_add(&late, 10);
    CHECK(late_take(&late, &pid));
    CHECK_EQ(pid, 20U);
    CHECK(late_take(&late, &pid));
    CHECK_EQ(pid, 10U);
    CHECK(!late_take(&late, &pid));
}

TEST(no_more_are_kept_than_there_is_room_for) {
    LateProcesses late = {};
    uint32_t pid = 0;

    late_add(&late, 1);
    CHECK(late_take(&late, &pid));
    for (uint32_t i = 0; i < 2 * LATE_PROCESSES_MAX; i++)
        late_add(&late, 100 + i);
    CHECK_EQ(late.n, (size_t)LATE_PROCESSES_MAX);
    for (uint32_t i = 0; i < LATE_PROCESSES_MAX; i++) {
        CHECK(late_take(&late, &pid));
        CHECK_EQ(pid, 100 + i);
    }
}

TEST(the_more_a_user_is_in_debt_the_less_he_is_waited_for) {
    LateProcesses late = {};

    CHECK_EQ(late_patience_ms(&late, 1000, 10 * SECOND), 250U);
    late_charge(&late, 1000, SECOND, 10 * SECOND);
    CHECK_EQ(late_patience_ms(&late, 1000, 10 * SECOND), 250U);
    late_charge(&late, 1000, SECOND, 10 * SECOND);
    CHECK_EQ(late_patience_ms(&late, 1000, 10 * SECOND), 25U);
    CHECK_EQ(late_patience_ms(&late, 0, 10 * SECOND), 250U);
    late_charge(&late, 1000, 4 * SECOND, 10 * SECOND);
    CHECK_EQ(late_patience_ms(&late, 1000, 29 * SECOND), 0U);
    CHECK_EQ(late_patience_ms(&late, 1000, 31 * SECOND), 25U);
    CHECK_EQ(late_patience_ms(&late, 1000, 111 * SECOND), 250U);
    /* What is paid is forgotten. */
    CHECK_EQ(late.n_users, 1U);
    CHECK_EQ(late_patience_ms(&late, 1000, 131 * SECOND), 250U);
    CHECK_EQ(late.n_users, 0U);
}

TEST(of_too_many_users_the_one_charged_least_recently_is_forgotten) {
    LateProcesses late = {};

    for (uid_t uid = 0; uid <= LATE_USERS_MAX; uid++)
        late_charge(&late, uid, 10 * SECOND, 10 * SECOND + uid);
    CHECK_EQ(late.n_users, (size_t)LATE_USERS_MAX);
    /* Without a debt of his own, but all together have one. */
    CHECK_EQ(late_patience_ms(&late, 0, 11 * SECOND), 25U);
    for (uid_t uid = 1; uid <= LATE_USERS_MAX; uid++)
        CHECK_EQ(late_patience_ms(&late, uid, 11 * SECOND), 0U);
}

static void late_add_own(Keeper *keeper, ProcessReader *reader) {
    Baseline b;

    keeper->refuses_all = ETIMEDOUT;
    if (process_reader_read(reader, (uint32_t)getpid(), &b) != -ETIMEDOUT)
        abort();
}

TEST(a_process_that_is_late_is_waited_for_only_when_its_turn_comes) {
    _cleanup_close_ int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    _cleanup_(process_reader_freep) ProcessReader *reader = NULL;
    Keeper keeper = {.root = "", .refuses_all = ETIMEDOUT};
    uint32_t own = (uint32_t)getpid(), pid = 0;
    Baseline b;

    CHECK_OK(process_reader_new(proc, &keeper, &reader));
    CHECK_EQ(process_reader_read_late(reader, &pid, &b), -ENODATA);
    CHECK_EQ(process_reader_read(reader, own, &b), -ETIMEDOUT);
    CHECK(process_reader_is_late(reader, own));
    /* It would answer now, and is not asked. */
    keeper.refuses_all = 0;
    CHECK_EQ(process_reader_read(reader, own, &b), -ETIMEDOUT);
    keeper.refuses_all = ETIMEDOUT;
    CHECK_EQ(process_reader_read_late(reader, &pid, &b), -ETIMEDOUT);
    CHECK_EQ(pid, own);
    CHECK(process_reader_has_late(reader));
    /* The helper cannot be started. */
    keeper.refuses_all = EBUSY;
    CHECK_EQ(process_reader_read_late(reader, &pid, &b), -EBUSY);
    CHECK(process_reader_has_late(reader));
    keeper.refuses_all = 0;
    CHECK_OK(process_reader_read_late(reader, &pid, &b));
    CHECK(b.n_maps > 0);
    CHECK(!process_reader_has_late(reader));
    CHECK_OK(process_reader_read(reader, own, &b));
    /* It may not be read, which will not change. */
    late_add_own(&keeper, reader);
    keeper.refuses_all = EACCES;
    CHECK_EQ(process_reader_read_late(reader, &pid, &b), -EACCES);
    CHECK(!process_reader_has_late(reader));
}

TEST_MAIN()
