/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Appends fields of protocol buffers to a Buffer. Fields may come in any order; of a repeated field
 * the order counts. A field that is 0 or empty is left out, as proto3 does, except in packed fields
 * and in the functions named _always, for members of a repeated field.
 */

#include "util/buffer.h"

/* At most 10 bytes. */
void protobuf_varint(Buffer *b, uint64_t v);
/* uint64, int64, uint32, int32, bool and enum; a negative number is its 64 bits. */
void protobuf_u64(Buffer *b, uint32_t field, uint64_t v);
/* fixed64, and the bits of a double. */
void protobuf_fixed64(Buffer *b, uint32_t field, uint64_t v);
/* string and bytes; a string must be valid UTF-8. */
void protobuf_bytes(Buffer *b, uint32_t field, Bytes bytes);
void protobuf_bytes_always(Buffer *b, uint32_t field, Bytes bytes);
void protobuf_str(Buffer *b, uint32_t field, const char *s);

/* A message, or a packed field, whose content is what is appended before protobuf_end(). Messages
 * nest; `begin` returns what `end` needs. */
size_t protobuf_begin(Buffer *b, uint32_t field);
void protobuf_end(Buffer *b, size_t begun);
