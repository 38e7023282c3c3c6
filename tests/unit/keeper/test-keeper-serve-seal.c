/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "make-served.h"

/* Recordings that the keeper seals. */

TEST(a_sealed_file_is_read_only_for_others) {
    char path[] = "/tmp/test-keeper.XXXXXX", file[64];
    struct stat status;
    Served served;
    int fd;

    CHECK(mkdtemp(path) != NULL);
    snprintf(file, sizeof(file), "%s/data", path);
    CHECK_OK(make_file(file, 0666));
    CHECK_OK(served_begin(&served));
    fd = open(file, O_RDONLY | O_CLOEXEC);
    CHECK_OK(keeper_seal(served.keeper, fd, false));
    CHECK_OK(keeper_seal(served.keeper, fd, false));
    (void)close(fd);
    CHECK_OK(stat(file, &status));
    CHECK_EQ(status.st_mode, S_IFREG | 0640);
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK_OK(keeper_seal(served.keeper, fd, true));
    (void)close(fd);
    CHECK_OK(stat(path, &status));
    CHECK_EQ(status.st_mode, S_IFDIR | 0750);
    (void)unlink(file);
    (void)rmdir(path);
    CHECK_EQ(served_end(&served), 0);
}

/* Like a seal that a slow disk left unfinished: only root owns sealed files, and a folder always
 * belongs to the recorder. */
TEST(a_folder_of_the_recorder_keeps_its_owner_and_can_be_sealed_again) {
    char path[] = "/tmp/test-keeper.XXXXXX";
    struct stat status;
    Served served;
    int fd;

    if (geteuid() != 0)
        TEST_SKIP("needs root to have another user");
    CHECK(mkdtemp(path) != NULL);
    CHECK_EQ(chown(path, RECORDER, RECORDER), 0);
    CHECK_OK(served_begin_for(RECORDER, &served));
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (size_t i = 0; i < 2; i++) {
        CHECK_OK(keeper_seal(served.keeper, fd, false));
        CHECK_OK(fstat(fd, &status));
        CHECK_EQ(status.st_uid, RECORDER);
        CHECK(status.st_gid != RECORDER);
        CHECK_EQ(status.st_mode, S_IFDIR | 0750);
    }
    CHECK_EQ(fchown(fd, 0, 0), 0);
    CHECK_EQ(keeper_seal(served.keeper, fd, false), -EPERM);
    (void)close(fd);
    (void)rmdir(path);
    CHECK_EQ(served_end(&served), 0);
}

TEST(only_regular_files_of_the_recorder_are_sealed) {
    char path[] = "/tmp/test-keeper.XXXXXX", file[64], other[64];
    Served served;
    int fd;

    CHECK(mkdtemp(path) != NULL);
    snprintf(file, sizeof(file), "%s/data", path);
    snprintf(other, sizeof(other), "%s/again", path);
    CHECK_OK(make_file(file, 0600));
    CHECK_OK(link(file, other));
    CHECK_OK(mkfifo(own_path("fifo"), 0600));
    CHECK_OK(served_begin(&served));
    fd = open(file, O_RDONLY | O_CLOEXEC);
    CHECK_EQ(keeper_seal(served.keeper, fd, false), -EPERM);
    (void)close(fd);
    fd = open(own_path("fifo"), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    CHECK_EQ(keeper_seal(served.keeper, fd, false), -EPERM);
    (void)close(fd);
    fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    CHECK_EQ(keeper_seal(served.keeper, fd, false), -EPERM);
    (void)close(fd);
    CHECK_EQ(keeper_seal(served.keeper, -1, false), -EBADMSG);
    (void)unlink(own_path("fifo"));
    (void)unlink(other);
    (void)unlink(file);
    (void)rmdir(path);
    CHECK_EQ(served_end(&served), 0);
}

TEST_MAIN()
