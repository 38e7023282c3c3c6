/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What names the code of an ELF file, in an ELF file of its own that holds no code: headers, build
 * id, symbols of functions with their strings, .gnu_debuglink and .gnu_debugdata. perf resolves
 * with it as with the whole file. Every byte is written anew from a field that was checked. The
 * file may be hostile: this needs memory and the reads of its source, and nothing else.
 */

#include "reduce/reduce-source.h"
#include "util/buffer.h"

/*
 * Returns 0 and appends at most limit_bytes to the empty buffer. Otherwise returns the error of
 * reading, -ENOMEM, or one of:
 * - -ENOEXEC: it is no ELF program, library or module
 * - -ENODATA: nothing in it names its code
 * - -E2BIG: a limit of reduce-limit.h or limit_bytes is exceeded
 * - -EBADMSG: its headers make no sense
 * The build id is what the caller found in the file; empty: none.
 */
int reduce_elf(const ReduceSource *source, Bytes build_id, uint64_t limit_bytes, Buffer *ret);
