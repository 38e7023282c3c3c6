/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Writes a page to a sink piece by piece. The first error is kept, and what follows is dropped. All
 * texts from outside pass text_escape() and then what their place in the page needs.
 */

#include "page/page-input.h"
#include "util/buffer.h"

typedef struct PageWriter {
    Buffer buffer, scratch;
    PageSink sink;
    void *arg;
    int error;
} PageWriter;

void page_writer_done(PageWriter *w);
/* Hands the rest over; returns the first error. */
int page_writer_finish(PageWriter *w);

void page_write(PageWriter *w, const void *data, size_t size);
void page_puts(PageWriter *w, const char *s);
void page_u64(PageWriter *w, uint64_t v);
/* "name":value, */
void page_json_u64(PageWriter *w, const char *name, uint64_t v);
/* As the content of an element, or of an attribute in double quotes. */
void page_html(PageWriter *w, Bytes text);
void page_html_str(PageWriter *w, const char *s);
/* A JSON string that may be inside a script element. */
void page_json(PageWriter *w, Bytes text);
void page_json_str(PageWriter *w, const char *s);

/* A number in digits of base 64 of five bits each, the lowest first; all but the last have 32
 * added. Small numbers, which are most, need one character. */
void page_digits(PageWriter *w, uint64_t v);
