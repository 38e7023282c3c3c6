/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/host/host-print.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "client/host/host-words.h"
#include "client/remote/remote.h"
#include "client/remote/reply.h"
#include "util/file.h"
#include "util/text.h"

/*
 * Another host is as untrusted as any other input: its lines are escaped again, which does not
 * change what was escaped there, and its JSON is parsed and written again. A line without an end is
 * broken up.
 */

enum { TEXT_LINE_MAX = 1 << 16, JSON_LINE_MAX = 64 << 20 };

void host_lines_done(HostLines *lines) {
    buffer_done(&lines->held);
    lines->printed = 0;
}

static void host_print_put_text(Buffer *out, const HostLines *lines, Bytes line) {
    /* ssh itself ends its lines with \r\n. */
    line.size -= line.size > 0 && line.data[line.size - 1] == '\r';
    text_printf(out, "%s:%*s", lines->host, lines->width - (int)strlen(lines->host) + 1, "");
    text_escape_again(out, line);
    text_putc(out, '\n');
}

static int host_print_put_json(Context *c, const char *host, Bytes line) {
    json_t *value, *object;
    int status = STATUS_FAILED;

    if (line.size == 0)
        return 0;
    value = json_loadb((const char *)line.data, line.size, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES,
                       NULL);
    if (!value) {
        (void)complain(STATUS_FAILED,
                       "The answer of '%s' is not JSON; its profctl may have another version.",
                       host);
        return -EBADMSG;
    }
    object = json_pack("{so so}", "host", remote_word(host), "result", reply_shown(value));
    json_decref(value);
    if (object)
        status = reply_print(c, object);
    json_decref(object);
    return status == STATUS_OK ? 0 : -ENOMEM;
}

/* The next line that can be printed; its length, and how much to skip including its end. */
static bool host_print_next_line(const HostLines *lines, bool ended, size_t most, Bytes *ret,
                                 size_t *ret_taken) {
    size_t left = lines->held.size - lines->printed, n;
    const uint8_t *at, *end;

    if (left == 0)
        return false;
    at = lines->held.data + lines->printed;
    end = memchr(at, '\n', left);
    n = end ? (size_t)(end - at) : left;
    if (!end && !ended && left < most)
        return false;
    if (n >= most) {
        n = most;
        end = NULL;
    }
    *ret = (Bytes){.data = at, .size = n};
    *ret_taken = n + (end != NULL);
    return true;
}

/* Removes what was printed from the buffer. */
static void host_print_forget_printed(HostLines *lines) {
    size_t left = lines->held.size - lines->printed;

    if (lines->printed == 0)
        return;
    memmove(lines->held.data, lines->held.data + lines->printed, left);
    lines->held.size = left;
    lines->printed = 0;
}

int host_print_lines(Context *c, HostLines *lines, bool ended, bool remarks) {
    bool json = !remarks && c->json != JSON_OFF;
    _cleanup_(buffer_done) Buffer said = {};
    size_t taken;
    Bytes line;
    int r = 0;

    while (
        host_print_next_line(lines, ended, json ? JSON_LINE_MAX : TEXT_LINE_MAX, &line, &taken)) {
        if (json && r == 0)
            r = host_print_put_json(c, lines->host, line);
        else if (!json)
            host_print_put_text(remarks ? &said : &c->out.buffer, lines, line);
        lines->printed += taken;
    }
    host_print_forget_printed(lines);
    if (said.size > 0 && buffer_error(&said) == 0)
        (void)file_write_all(STDERR_FILENO, said.data, said.size);
    return r;
}

int host_known_status(int status) {
    return status <= STATUS_PARTIAL || status == HOST_STATUS_UNREACHABLE ? status : STATUS_FAILED;
}

void host_print_failure(const char *host, int status, bool one) {
    static const char *const words[] = {
        [STATUS_FAILED] = "failed",
        [STATUS_USAGE] = "the command line was not understood",
        [STATUS_NOT_RUNNING] = "profd is not running",
        [STATUS_NOT_PERMITTED] = "not permitted",
        [STATUS_NOT_FOUND] = "not found",
        [STATUS_TIMED_OUT] = "timed out",
        [STATUS_DEGRADED] = "degraded",
        [STATUS_PARTIAL] = "done in part",
    };

    if (status == STATUS_OK)
        return;
    if (status == HOST_STATUS_UNREACHABLE)
        (void)complain(status, "'%s' could not be reached by ssh, or it lost the connection.",
                       host);
    else if (status == 127)
        (void)complain(status, "'%s' has no profctl in its PATH.", host);
    else if ((size_t)status >= ARRAY_SIZE(words))
        (void)complain(status, "On '%s' profctl ended with status %d.", host, status);
    else if (!one)
        (void)complain(status, "'%s': %s (status %d).", host, words[status], status);
}
