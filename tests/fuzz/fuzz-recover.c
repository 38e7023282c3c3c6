/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <sys/mman.h>

#include "fuzz.h"
#include "perfdata/writer/writer.h"
#include "util/file.h"

/*
 * A segment that a killed recorder left behind, damaged in any way: recovery must end, and what it
 * says it finished must open and hold as many whole records as it says. (A whole record may still
 * say nonsense; that is no damage that could be cut off; and an empty one gets a FINISHED_INIT,
 * since a data section of no bytes means that it is unfinished.) Input: the file.
 */

static void check_recovered(int fd, const PdRecovery *recovery) {
    _cleanup_(pd_reader_freep) PdReader *reader = NULL;
    _cleanup_close_ int copy = dup(fd);
    uint64_t records = 0;
    PdRecord record;
    PdDamage why;

    if (copy < 0)
        return;
    if (pd_reader_open_fd(copy, NULL, &reader, &why) < 0)
        abort();
    TAKE_FD(copy);
    while (pd_reader_next(reader, &record) > 0)
        records++;
    if (records != MAX(recovery->records, (uint64_t)1) || pd_reader_header(reader)->unfinished)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    _cleanup_(pd_environment_freep) PdEnvironment *environment = NULL;
    _cleanup_close_ int fd = memfd_create("segment", MFD_CLOEXEC);
    PdRecovery recovery;

    if (fd < 0 || pd_environment_new(&environment) < 0 || file_write_all(fd, data, size) < 0)
        return 0;
    if (pd_segment_recover(fd, PD_LAYOUT_FILE, environment, &recovery) == 0)
        check_recovered(fd, &recovery);
    return 0;
}
