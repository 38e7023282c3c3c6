/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What a frame is called that no symbol names. */

#include "profile/frame-names.h"
#include "profile/frame.h"
#include "util/buffer.h"

/* The name of frames that are no code, such as FRAME_OTHER; NULL: other frames. */
const char *frame_text_fixed(FrameKind kind);
/* Appends "file+0xoffset" or "0xaddress", and "[replaced]" where that is the reason. */
void frame_text_unnamed(const FrameMapping *mapping, uint64_t address, FrameNaming naming,
                        Buffer *ret);
