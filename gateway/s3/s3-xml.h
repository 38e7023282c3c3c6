/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The little of XML that a store answers with: elements and text. No DOCTYPE, no entities but the
 * five of XML and numbers, a bounded depth; nothing is allocated. */

#include <stdbool.h>

#include "util/bytes.h"

enum { S3_XML_DEPTH_MAX = 8 };

typedef struct S3XmlPath {
    Bytes names[S3_XML_DEPTH_MAX]; /* without prefixes; the document's element first */
    unsigned n;
} S3XmlPath;

/* Whether the path is names "A/B/C". */
bool s3_xml_is(const S3XmlPath *path, const char *names);

/*
 * Calls `element` at the end of each element, with the text directly in it (the last piece between
 * two tags), still encoded. A negative return value stops and is returned. -EBADMSG: it is no such
 * XML, or ends too early.
 */
typedef int (*S3XmlElement)(void *userdata, const S3XmlPath *path, Bytes text);
int s3_xml_walk(Bytes xml, S3XmlElement element, void *userdata);

/* Decodes text to a string. -EBADMSG: an unknown entity, or a control character; -E2BIG. */
int s3_xml_text(Bytes text, char *ret, size_t size);
