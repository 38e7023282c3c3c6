/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the JSON files of the store have in common: numbers, and texts of any bytes. */

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

enum { CODEC_TEXT_MAX = 256 }; /* of a text, with its NUL */

json_t *codec_number(uint64_t v);
/* Bytes that are no plain text become \xNN. */
json_t *codec_text(const char *s);
/* -EBADMSG for what codec_text() could not have made, or is too long. */
int codec_take_text(const json_t *json, char *ret, size_t size);
int codec_take_number(const json_t *json, uint64_t max, uint64_t *ret);
