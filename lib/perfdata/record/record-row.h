/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Inside lib/perfdata: the rows of the record types. A row has the fields of the body, from which
 * it is parsed, described and written. What a list of fields cannot say (counts, forms that depend
 * on the size) is left to two functions of the type: the parser in the row, and the describer in
 * record-describe.c.
 */

#include "perfdata/record/record.h"
#include "util/buffer.h"

/* How a field is stored and shown. A number has as many bytes as its member in PdBody. */
typedef enum RecordFieldKind {
    FIELD_END,
    FIELD_NUMBER,
    FIELD_ID, /* of a task or a CPU: signed, -1 means a task that is gone, or all of them */
    FIELD_HEX,
    FIELD_TIME,
    FIELD_CHOICE,  /* words[number] */
    FIELD_FLAGS,   /* words[bit] for each bit; the last kind of a number */
    FIELD_TEXT,    /* Bytes: up to a NUL, or to the end of its `n` bytes (0: of the body) */
    FIELD_BYTES,   /* a pointer to `n` bytes */
    FIELD_REST,    /* Bytes: all that is left */
    FIELD_ARRAY,   /* a u64 count, then so many entries of `n` bytes: Bytes behind the count */
    FIELD_MISC,    /* bool: the bits `at` of misc; shown only if set */
    FIELD_SPECIAL, /* what the functions of the type read and show from here on */
} RecordFieldKind;

/* In the order in which the fields are shown. */
typedef struct RecordField {
    RecordFieldKind kind;
    uint16_t member, size; /* in PdBody */
    uint16_t at;           /* offset in the body on disk */
    const char *name;      /* NULL: not shown, or shown by the function of the type */
    const char *const *words;
    uint16_t n; /* number of words, or of bytes */
} RecordField;

/* What a parser may need besides the bytes. Its cursor ends at the trailer. */
typedef struct RecordContext {
    const PdRecord *record;
    const PdEvent *event; /* may be NULL */
} RecordContext;

/* A parser reads everything it needs into a body of zeros; the cursor, which is where the field
 * FIELD_SPECIAL says, fails if the body is too short. */
typedef void RecordParse(Cursor *c, const RecordContext *in, PdBody *ret);

typedef struct RecordRow {
    uint32_t type;
    const char *name;
    bool tasks; /* the body has its own pid and tid, which differ in meaning from those of the
                 * stamp */
    RecordParse *parse;        /* for FIELD_SPECIAL; may be NULL */
    const RecordField *fields; /* NULL: the body is shown as bytes */
} RecordRow;

/* NULL for a type without a row. */
const RecordRow *record_row(uint32_t type);

/* Appends the body of a record in the byte order of this host; its text is cut after text_max bytes
 * and padded. The bytes of special fields are zeros. `body` is the member of PdBody for the type.
 */
void record_append_body(Buffer *out, uint32_t type, const void *body, size_t text_max);

/* pd_record_parse() and pd_sample_parse() without the guarantee that *ret is unchanged on failure,
 * which would cost a copy of half a kilobyte each. */
int record_parse_into(const RecordRow *row, const PdRecord *record, const PdEvent *event,
                      PdBody *ret);
int sample_parse_into(const PdRecord *record, const PdEvent *event, PdSample *ret);

/* A string in a field of n bytes, whose end old writers may have cut off. */
static inline Bytes record_parse_text(Cursor *c, size_t n) {
    Cursor field = *c;

    if (cursor_left(c) > n)
        field.end = field.at + n;
    cursor_take(c, cursor_left(&field));
    return cursor_string(&field);
}

RecordParse record_parse_mmap2, record_parse_read, record_parse_sample, record_parse_text_poke,
    record_parse_callchain_deferred, record_parse_header_attr, record_parse_build_id,
    record_parse_id_index, record_parse_auxtrace_info, record_parse_auxtrace_error,
    record_parse_cpu_map, record_parse_event_update, record_parse_time_conv,
    record_parse_compressed2;
