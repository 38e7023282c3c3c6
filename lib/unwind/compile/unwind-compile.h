/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Makes the unwind table of an ELF file from its .eh_frame and .debug_frame. This is the half that
 * parses what strangers wrote, so it runs where nothing can be reached: it needs memory and the
 * reads of its source, and nothing else.
 */

#include "unwind/compile/unwind-source.h"
#include "util/buffer.h"

/*
 * 0: an image for unwind_table_open() is appended to the empty buffer. Otherwise what reading
 * failed with, -ENOMEM, or: -ENOEXEC  no 64-bit ELF program or library of this byte order for a
 * machine that we know -ENODATA  the file has no code or says nothing of how to unwind it -ENOTSUP
 * all that it has is a compressed .debug_frame -E2BIG    a limit of unwind-limit.h -EBADMSG  what
 * it says makes no sense
 */
int unwind_compile(const UnwindSource *source, Buffer *ret_image);
int unwind_compile_fd(int fd, Buffer *ret_image);
