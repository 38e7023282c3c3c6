/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "store/disk/codec.h"

#include <errno.h>
#include <string.h>

#include "util/text.h"

/*
 * The tables of members are walked in both directions, so that what is written and what is read
 * cannot disagree. Names may contain any bytes and pass the one escape.
 */

json_t *codec_number(uint64_t v) {
    return json_integer((json_int_t)MIN(v, (uint64_t)INT64_MAX));
}

json_t *codec_text(const char *s) {
    _cleanup_(buffer_done) Buffer escaped = {};

    text_escape_str(&escaped, s);
    if (buffer_error(&escaped) < 0)
        return NULL;
    return json_stringn(escaped.size ? (const char *)escaped.data : "", escaped.size);
}

static int codec_hex_digit(char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int codec_take_text(const json_t *json, char *ret, size_t size) {
    const char *s = json_string_value(json), *end = s ? s + json_string_length(json) : NULL;
    char text[CODEC_TEXT_MAX];
    size_t n = 0;

    if (!s || size > sizeof(text))
        return -EBADMSG;
    for (; s < end && n < size - 1; n++) {
        int high = 0, low = 0;

        if (*s == '\\' && (end - s < 4 || s[1] != 'x' || (high = codec_hex_digit(s[2])) < 0 ||
                           (low = codec_hex_digit(s[3])) < 0))
            return -EBADMSG;
        text[n] = *s == '\\' ? (char)(high << 4 | low) : *s;
        if (text[n] == '\0')
            return -EBADMSG;
        s += *s == '\\' ? 4 : 1;
    }
    if (s < end)
        return -EBADMSG;
    memcpy(ret, text, n);
    ret[n] = '\0';
    return 0;
}

int codec_take_number(const json_t *json, uint64_t max, uint64_t *ret) {
    json_int_t v = json_integer_value(json);

    if (!json_is_integer(json) || v < 0 || (uint64_t)v > max)
        return -EBADMSG;
    *ret = (uint64_t)v;
    return 0;
}

static json_t *codec_member(const CodecRow *row, const void *from) {
    const char *member = (const char *)from + row->offset;
    uint64_t v = row->kind == CODEC_TEXT ? 0 : load_uint(member, row->size, false);

    switch (row->kind) {
    case CODEC_NUMBER:
        return codec_number(v);
    case CODEC_TEXT:
        return codec_text(member);
    case CODEC_FLAG:
        return json_boolean(v);
    default:
        return json_string(row->words[v]);
    }
}

int codec_add_rows(json_t *json, const CodecRow *rows, size_t n, const void *from) {
    int bad = 0;

    for (size_t i = 0; i < n; i++)
        bad |= json_object_set_new(json, rows[i].name, codec_member(&rows[i], from));
    return bad ? -ENOMEM : 0;
}

static int codec_take_word(const CodecRow *row, const json_t *json, uint64_t *ret) {
    const char *word = json_string_value(json);

    for (size_t i = 0; word && i < row->n_words; i++)
        if (strcmp(word, row->words[i]) == 0) {
            *ret = i;
            return 0;
        }
    return -EBADMSG;
}

static int codec_take_member(const CodecRow *row, const json_t *json, void *ret) {
    char *member = (char *)ret + row->offset;
    uint64_t v = 0;
    int r = 0;

    if (!json && row->is_new) {
        memset(member, 0, row->size);
        return 0;
    }
    switch (row->kind) {
    case CODEC_TEXT:
        return codec_take_text(json, member, row->size);
    case CODEC_NUMBER:
        r = codec_take_number(json, row->size == sizeof(uint32_t) ? UINT32_MAX : INT64_MAX, &v);
        break;
    case CODEC_FLAG:
        r = json_is_boolean(json) ? 0 : -EBADMSG;
        v = json_is_true(json);
        break;
    case CODEC_WORD:
        r = codec_take_word(row, json, &v);
        break;
    }
    if (r == 0)
        store_uint(member, row->size, v, false);
    return r;
}

int codec_take_rows(const json_t *json, const CodecRow *rows, size_t n, void *ret) {
    int r = 0;

    for (size_t i = 0; r == 0 && i < n; i++)
        r = codec_take_member(&rows[i], json_object_get(json, rows[i].name), ret);
    return r;
}

json_t *codec_array(const void *from, size_t n, CodecAdd *add) {
    json_auto_t *list = json_array();

    for (size_t i = 0; list && i < n; i++)
        if (add(list, from, i) < 0)
            return NULL;
    return json_incref(list);
}

int codec_take_list(const json_t *json, size_t max, void *ret, CodecTake *take) {
    int r = json_is_array(json) && json_array_size(json) <= max ? 0 : -EBADMSG;

    for (size_t i = 0; r == 0 && i < json_array_size(json); i++)
        r = take(ret, json_array_get(json, i));
    return r;
}

json_t *codec_gap(const PdGap *gap, bool what) {
    json_auto_t *json = json_pack("{s:o,s:o}", "from_ns", codec_number(gap->from_ns), "to_ns",
                                  codec_number(gap->to_ns));
    int bad = 0;

    if (what)
        bad |= json_object_set_new(json, "what", json_string(pd_gap_reason_text(gap->reason)));
    bad |= json_object_set_new(json, "reason", json_string(pd_gap_reason_name(gap->reason)));
    if (gap->cpu != PD_ALL_CPUS)
        bad |= json_object_set_new(json, "cpu", codec_number(gap->cpu));
    return bad ? NULL : json_incref(json);
}

PdGapReason codec_take_reason(const json_t *json) {
    PdGapReason reason = PD_GAP_UNKNOWN;

    if (json_is_string(json))
        (void)pd_gap_reason_from_name(json_string_value(json), &reason);
    return reason;
}

int codec_take_span(const json_t *json, uint64_t *ret_from_ns, uint64_t *ret_to_ns) {
    if (codec_take_number(json_object_get(json, "from_ns"), INT64_MAX, ret_from_ns) < 0 ||
        codec_take_number(json_object_get(json, "to_ns"), INT64_MAX, ret_to_ns) < 0 ||
        *ret_from_ns > *ret_to_ns)
        return -EBADMSG;
    return 0;
}

int codec_take_gap(const json_t *json, PdGap *ret) {
    const json_t *on = json_object_get(json, "cpu");
    uint64_t cpu = PD_ALL_CPUS;

    if (codec_take_span(json, &ret->from_ns, &ret->to_ns) < 0 ||
        (on && codec_take_number(on, PD_COVERAGE_CPUS_MAX - 1, &cpu) < 0))
        return -EBADMSG;
    ret->cpu = (uint32_t)cpu;
    ret->reason = codec_take_reason(json_object_get(json, "reason"));
    return 0;
}

json_t *codec_file(unsigned version) {
    return json_pack("{s:i}", "version", (int)version);
}

int codec_write(const json_t *json, size_t flags, Buffer *out) {
    _cleanup_free_ char *dump = json ? json_dumps(json, flags | JSON_PRESERVE_ORDER) : NULL;

    if (!dump)
        return -ENOMEM;
    text_puts(out, dump);
    text_putc(out, '\n');
    return buffer_error(out);
}

json_t *codec_read(Bytes bytes, size_t max, unsigned version) {
    json_auto_t *json = NULL;
    uint64_t found;

    if (bytes.size == 0 || bytes.size > max)
        return NULL;
    json = json_loadb((const char *)bytes.data, bytes.size, JSON_REJECT_DUPLICATES, NULL);
    if (!json_is_object(json) ||
        codec_take_number(json_object_get(json, "version"), version, &found) < 0 || found < 1)
        return NULL;
    return json_incref(json);
}
