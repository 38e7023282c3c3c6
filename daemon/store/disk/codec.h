/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the JSON files of the store share: numbers, and strings of arbitrary bytes. */

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

enum { CODEC_TEXT_MAX = 256 }; /* of a string, with its NUL */

json_t *codec_number(uint64_t v);
/* Escapes bytes that are not printable text as \xNN. */
json_t *codec_text(const char *s);
/* -EBADMSG if codec_text() cannot have produced it, or if it is too long. */
int codec_take_text(const json_t *json, char *ret, size_t size);
int codec_take_number(const json_t *json, uint64_t max, uint64_t *ret);
