/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/writer/scan.h"

#include <errno.h>
#include <stdio.h>
#include <zstd.h>

#include "perfdata/record/record.h"
#include "perfdata/writer/compress.h"
#include "perfdata/writer/writer-internal.h"
#include "util/macro.h"

/*
 * A reader for recovery only: it does not ask what can still be understood, but which bytes may
 * stay so that the next reader finds nothing wrong. It reads by offset through a small window and
 * accepts a frame only if its checksum is right and it ends at the end of a record.
 */

enum {
    WINDOW = 256 * 1024,
    TYPE_MAX = 127,
};

typedef struct Scanner {
    int fd;
    uint64_t size;
    bool swap;
    const PdEvents *events;
    PdTally *tally;
    ZSTD_DCtx *context;
    uint8_t *window; /* WINDOW bytes */
    uint64_t window_at;
    size_t window_size;
    uint8_t *frame; /* PD_FRAME_RAW_MAX bytes */
    PdScan scan;
} Scanner;

static void scan_scanner_done(Scanner *s) {
    ZSTD_freeDCtx(s->context);
    free(s->window);
    free(s->frame);
}

/* Returns bytes at an offset, all within the file; NULL and an errno if they cannot be read. */
static int scan_peek(Scanner *s, uint64_t at, size_t n, const uint8_t **ret) {
    assert(n <= WINDOW && at + n <= s->size);
    if (at < s->window_at || at + n > s->window_at + s->window_size) {
        size_t want = (size_t)MIN((uint64_t)WINDOW, s->size - at), got = 0;

        s->window_size = 0;
        while (got < want) {
            ssize_t k = pread(s->fd, s->window + got, want - got, (off_t)(at + got));

            if (k < 0 && errno != EINTR)
                return -errno;
            if (k == 0)
                return -EIO;
            got += (size_t)MAX(k, 0);
        }
        s->window_at = at;
        s->window_size = got;
    }
    *ret = s->window + (at - s->window_at);
    return 0;
}

/* Whether a record may be in a file of ours: new kernel types may, COMPRESSED2 and simpleperf's
 * records may not. */
static bool scan_is_ours(const PdRecord *record) {
    return pd_record_is_sane(record) && record->type <= TYPE_MAX &&
           record->type != PD_RECORD_COMPRESSED2;
}

/* Whether the content of the record is plausible; else *ret_why has the reason. */
static bool scan_makes_sense(const Scanner *s, const PdRecord *record, const char **ret_why) {
    PdStamp stamp;

    if (!scan_is_ours(record))
        *ret_why = "no record";
    else if (record->type < PD_RECORD_USER && record->size % 8 > 0)
        *ret_why = "a record of a size that the kernel never gives";
    else if (pd_events_stamp(s->events, record, &stamp) < 0)
        *ret_why = "a record too short for its event";
    else
        return true;
    return false;
}

/* Reads the n bytes of a frame: 1 whole records, 0 not, negative errno. */
static int scan_walk_frame(Scanner *s, size_t n, bool tally) {
    for (size_t at = 0; at < n;) {
        const char *why;
        PdRecord record;
        int r;

        if (n - at < PD_RECORD_HEADER_SIZE)
            return 0;
        record = pd_record_at(s->frame + at, s->swap);
        if (record.size > n - at || !scan_makes_sense(s, &record, &why))
            return 0;
        r = tally ? pd_tally_add(s->tally, s->events, &record) : 0;
        if (r < 0)
            return r;
        at += record.size;
    }
    return 1;
}

/* 1: whole, 0: not (*ret_why), negative errno. */
static int scan_take_frame(Scanner *s, const uint8_t *body, size_t n, const char **ret_why) {
    unsigned long long content = ZSTD_getFrameContentSize(body, n);
    size_t got;
    int r;

    *ret_why = "a frame that is damaged";
    if (content == ZSTD_CONTENTSIZE_UNKNOWN && s->scan.frame_raw == 0)
        return -EBADMSG;
    if (content == ZSTD_CONTENTSIZE_UNKNOWN || content == ZSTD_CONTENTSIZE_ERROR || content == 0 ||
        content > PD_FRAME_RAW_MAX || ZSTD_findFrameCompressedSize(body, n) != n)
        return 0;
    got = ZSTD_decompressDCtx(s->context, s->frame, PD_FRAME_RAW_MAX, body, n);
    if (ZSTD_isError(got) || got != content)
        return 0;
    *ret_why = "a frame that holds no whole records";
    r = scan_walk_frame(s, got, false);
    if (r > 0)
        r = scan_walk_frame(s, got, true);
    if (r <= 0)
        return r;
    s->scan.frame_raw = MAX(s->scan.frame_raw, (uint32_t)got);
    s->scan.raw_bytes += got;
    return 1;
}

/* 1: advanced s->scan.end; 0: the end (*ret_why or ""); a negative errno. */
static int scan_step(Scanner *s, const char **ret_why) {
    uint64_t at = s->scan.end, left = s->size - at, size, payload;
    const uint8_t *p;
    PdRecord record;
    int r;

    *ret_why = left == 0 ? "" : "a record that is cut short";
    if (left < PD_RECORD_HEADER_SIZE)
        return 0;
    r = scan_peek(s, at, PD_RECORD_HEADER_SIZE, &p);
    if (r < 0)
        return r;
    record = pd_record_at(p, s->swap);
    if (!scan_is_ours(&record)) {
        *ret_why = "no record";
        return 0;
    }
    size = record.size;
    if (size > left)
        return 0;
    r = scan_peek(s, at, (size_t)MIN(size, (uint64_t)WINDOW), &p);
    if (r < 0)
        return r;
    record.data = p;
    payload = pd_record_payload_size(&record);
    if (payload > left - size)
        return 0;
    if (!scan_makes_sense(s, &record, ret_why))
        return 0;
    if (record.type == PD_RECORD_COMPRESSED) {
        r = scan_take_frame(s, p + PD_RECORD_HEADER_SIZE, size - PD_RECORD_HEADER_SIZE, ret_why);
    } else {
        r = pd_tally_add(s->tally, s->events, &record);
        s->scan.raw_bytes += size + payload;
        r = r < 0 ? r : 1;
    }
    if (r > 0)
        s->scan.end = at + size + payload;
    return r;
}

int pd_scan_file(int fd, uint64_t start, uint64_t size, const PdEvents *events, bool swap,
                 PdTally *tally, PdScan *ret) {
    _cleanup_(scan_scanner_done) Scanner s = {.fd = fd,
                                              .size = size,
                                              .swap = swap,
                                              .events = events,
                                              .tally = tally,
                                              .context = ZSTD_createDCtx(),
                                              .window = malloc(WINDOW),
                                              .frame = malloc(PD_FRAME_RAW_MAX),
                                              .scan = {.end = start}};
    const char *why;
    int r;

    if (!s.context || !s.window || !s.frame)
        return -ENOMEM;
    while ((r = scan_step(&s, &why)) > 0)
        ;
    if (r < 0)
        return r;
    if (*why)
        snprintf(s.scan.damage, sizeof(s.scan.damage), "%s at offset %llu", why,
                 (unsigned long long)s.scan.end);
    *ret = s.scan;
    return 0;
}
