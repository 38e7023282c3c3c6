/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "recorder/code-lock.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

/*
 * The loader lists the program and its libraries, and of their segments those that are only read
 * are locked. Data is not: the allocator could not give locked memory back.
 */

typedef struct CodeLock {
    uint64_t page, bytes;
    int error;
} CodeLock;

static int code_lock_segment(CodeLock *lock, uintptr_t begin, uintptr_t end) {
    begin -= begin % lock->page;
    if (mlock2((const void *)begin, end - begin, MLOCK_ONFAULT) < 0)
        return -errno;
    lock->bytes += end - begin;
    return 0;
}

static int code_lock_object(struct dl_phdr_info *object, size_t size, void *userdata) {
    CodeLock *lock = userdata;

    for (size_t i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        uintptr_t begin = object->dlpi_addr + segment->p_vaddr;
        int r;

        if (segment->p_type != PT_LOAD || segment->p_flags & PF_W || segment->p_memsz == 0)
            continue;
        r = code_lock_segment(lock, begin, begin + segment->p_memsz);
        if (r < 0 && lock->error == 0)
            lock->error = r;
    }
    return 0;
}

int code_lock(uint64_t *ret_bytes) {
    CodeLock lock = {.page = (uint64_t)sysconf(_SC_PAGESIZE)};

    (void)dl_iterate_phdr(code_lock_object, &lock);
    *ret_bytes = lock.bytes;
    return lock.error;
}
