/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "scan/device.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test.h"
#include "util/macro.h"

/* Mounts as the kernel lists them, in a /proc of the test's own. */

enum { PROCESS = 42, OTHER = 43 };

static char folder[] = "/tmp/test-scan-device-XXXXXX";
static DeviceTable table;
static LineReader lines;
static int proc = -1;

static void list_mounts(const char *process, const char *text) {
    char path[64];
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s", folder, process);
    (void)mkdir(path, 0700);
    snprintf(path, sizeof(path), "%s/%s/mountinfo", folder, process);
    f = fopen(path, "we");
    if (!f || fputs(text, f) < 0 || fclose(f) != 0)
        abort();
}

static void begin(void) {
    strcpy(folder + sizeof(folder) - 7, "XXXXXX");
    if (!mkdtemp(folder))
        abort();
    list_mounts("42", "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
                      "36 22 0:50 / /home/u/my\\040files rw shared:9 - fuse.sshfs host: rw\n"
                      "37 22 0:51 / /srv rw - nfs4 server:/srv rw\n"
                      "38 22 7:3 / /media rw master:3 propagate_from:2 - fuseblk /dev/loop3 rw\n"
                      "40 22 0:52 / /home rw - cifs //server/home rw\n"
                      "41 22 0:53 / /host rw - 9p host rw\n"
                      "42 22 0:54 / /net rw - autofs systemd-1 rw\n"
                      "nonsense\n39 22 0:x / / rw - fuse x rw\n");
    list_mounts("43", "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n");
    proc = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    device_table_init(&table, proc, &lines);
}

static void end(void) {
    char command[128];

    closep(&proc);
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    if (system(command) != 0)
        abort();
}

TEST(files_on_fuse_are_avoided_and_others_are_not) {
    begin();
    CHECK(device_is_avoided(&table, (Device){0, 50}, PROCESS));
    CHECK(device_is_avoided(&table, (Device){7, 3}, PROCESS));
    CHECK(!device_is_avoided(&table, (Device){8, 1}, PROCESS));
    CHECK(!device_is_avoided(&table, (Device){0, 51}, PROCESS));
    end();
}

TEST(a_network_file_system_is_avoided_after_it_did_not_answer) {
    for (uint32_t minor = 51; minor <= 54; minor++) {
        begin();
        CHECK(!device_is_avoided(&table, (Device){0, minor}, PROCESS));
        device_avoid(&table, (Device){0, minor});
        for (uint32_t other = 51; other <= 54; other++)
            CHECK_EQ(device_is_avoided(&table, (Device){0, other}, PROCESS), other == minor);
        end();
    }
}

TEST(a_device_in_no_mount_table_is_tried) {
    begin();
    CHECK(!device_is_avoided(&table, (Device){0, 99}, PROCESS));
    CHECK(!device_is_avoided(&table, (Device){0, 50}, OTHER));
    CHECK(!device_is_avoided(&table, (Device){0, 52}, 4711));
    end();
}

TEST(a_device_that_did_not_answer_is_avoided_for_all_processes) {
    begin();
    device_avoid(&table, (Device){0, 51});
    CHECK(device_is_avoided(&table, (Device){0, 51}, PROCESS));
    CHECK(device_is_avoided(&table, (Device){0, 51}, OTHER));
    CHECK(!device_is_avoided(&table, (Device){0, 52}, PROCESS));
    CHECK(!device_is_avoided(&table, (Device){0, 0}, PROCESS));
    end();
}

TEST(a_device_is_avoided_longer_each_time_and_never_for_ever) {
    uint64_t first_ns;

    begin();
    device_avoid(&table, (Device){0, 51});
    first_ns = table.avoided[0].delay_ns;
    for (unsigned i = 0; i < 100; i++)
        device_avoid(&table, (Device){0, 51});
    CHECK(table.avoided[0].delay_ns > first_ns);
    CHECK(table.avoided[0].delay_ns <= 3600ULL * 1000000000);
    end();
}

TEST(the_device_that_expires_first_makes_room_for_another) {
    begin();
    for (uint32_t i = 0; i < DEVICES_AVOIDED_MAX + 1; i++)
        device_avoid(&table, (Device){1, i});
    CHECK(!device_is_avoided(&table, (Device){1, 0}, PROCESS));
    CHECK(device_is_avoided(&table, (Device){1, 1}, PROCESS));
    CHECK(device_is_avoided(&table, (Device){1, DEVICES_AVOIDED_MAX}, PROCESS));
    end();
}

TEST_MAIN()
