/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "elf/sealed-file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "elf/elf-request.h"
#include "util/file.h"
#include "util/macro.h"

/*
 * The content is written by pwrite(), the only allowed call that writes. It cannot write to a
 * socket, so the helper can write to nothing but a memfd that is not sealed yet.
 */

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U /* since Linux 6.3; vm.memfd_noexec=2 allows no other memfd */
#endif

int sealed_file_new(Bytes bytes, int *ret_fd) {
    const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    _cleanup_close_ int fd = memfd_create("profd-elf", flags | MFD_NOEXEC_SEAL);
    int r;

    if (fd < 0 && errno == EINVAL)
        fd = memfd_create("profd-elf", flags);
    if (fd < 0)
        return -errno;
    r = file_write_all_at(fd, bytes.data, bytes.size, 0);
    if (r < 0)
        return r;
    if (fcntl(fd, F_ADD_SEALS, ELF_SEALS) < 0)
        return -errno;
    *ret_fd = TAKE_FD(fd);
    return 0;
}

bool sealed_file_stays(int fd, uint64_t size) {
    int seals = fcntl(fd, F_GET_SEALS);
    struct statfs system;
    struct stat st;

    return seals >= 0 && (seals & ELF_SEALS) == ELF_SEALS && fstatfs(fd, &system) == 0 &&
           system.f_type == TMPFS_MAGIC && fstat(fd, &st) == 0 && st.st_size >= 0 &&
           (uint64_t)st.st_size == size;
}
