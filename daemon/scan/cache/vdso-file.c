/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "scan/cache/vdso-file.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "util/macro.h"

/*
 * The kernel maps the vdso into each process, and no file has it. What profd-elf reads of it is a
 * copy of our own, which the kernel made and nobody else can have changed.
 */

enum { VDSO_BYTES_MAX = 64 << 10 };

bool vdso_is_mapped(const MappedImage *image) {
    /* That of a 32-bit process lies below 4 GiB and is other code. */
    return image->inode == 0 && image->start > UINT32_MAX && image->path &&
           strcmp(image->path, "[vdso]") == 0;
}

/* Its section headers come last. */
static size_t vdso_file_size(const Elf64_Ehdr *header) {
    uint64_t size = header->e_shoff + (uint64_t)header->e_shnum * header->e_shentsize;

    return size <= VDSO_BYTES_MAX ? (size_t)size : 0;
}

int vdso_open(int *ret_fd) {
    /* The kernel passes addresses as numbers. */
    const void *vdso = (const void *)(uintptr_t)getauxval(AT_SYSINFO_EHDR); /* NOLINT */
    size_t size = vdso && sizeof(void *) == 8 ? vdso_file_size(vdso) : 0;
    _cleanup_close_ int fd = -1;

    if (size == 0)
        return -ENODATA;
    fd = memfd_create("profd-vdso", MFD_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (write(fd, vdso, size) != (ssize_t)size)
        return -EIO;
    *ret_fd = TAKE_FD(fd);
    return 0;
}
