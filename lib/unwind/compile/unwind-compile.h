/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Makes the unwind table of an ELF file from its .eh_frame and .debug_frame. Only this part of
 * unwinding parses files that strangers wrote, so it runs in a process without rights: it needs
 * memory and the reads of its source, and nothing else.
 */

#include "unwind/compile/unwind-source.h"
#include "util/buffer.h"

/*
 * Returns 0, and appends an image for unwind_table_open() to the empty buffer. Otherwise returns
 * the error of reading, -ENOMEM, or one of:
 * - -ENOEXEC: no 64-bit ELF program or library of this byte order for a known machine
 * - -ENODATA: the file has no code, or no information on how to unwind it
 * - -ENOTSUP: the file has only a compressed .debug_frame
 * - -E2BIG: a limit of unwind-limit.h is exceeded
 * - -EBADMSG: the unwind information is malformed
 */
int unwind_compile(const UnwindSource *source, Buffer *ret_image);
int unwind_compile_fd(int fd, Buffer *ret_image);
