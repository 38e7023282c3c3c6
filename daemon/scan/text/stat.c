/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "scan/text/stat.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/*
 * "PID (COMM) STATE PPID …": the process chooses its comm, which may contain parentheses and
 * newlines, so fields are counted from the last parenthesis.
 */

/* proc_pid_stat(5) numbers the fields from 1; those after the comm begin with 3. */
enum {
    FIELD_STATE = 3,
    FIELD_PPID = 4,
    FIELD_FLAGS = 9,
    FIELD_N_THREADS = 20,
    FIELD_START = 22,
};

/* In /proc the comm of a kernel worker is followed by its current work, which changes all the time
 * and is in no COMM record. */
static size_t stat_worker_name_size(Bytes text) {
    size_t i = 8;

    if (text.size < i || memcmp(text.data, "kworker/", i) != 0)
        return text.size;
    if (text.size > i && text.data[i] == 'R')
        return text.size;
    while (i < text.size && text.data[i] != '-' && text.data[i] != '+')
        i++;
    return i;
}

void process_comm_copy(char ret[16], Bytes text) {
    size_t n = stat_worker_name_size(text);

    n = n < 15 ? n : 15;
    memset(ret, 0, 16);
    memcpy(ret, text.data, n);
}

static bool stat_is_digit(uint8_t c) {
    return c >= '0' && c <= '9';
}

/* Parses a field and the blank after it; a negative number counts as 0. */
static uint64_t stat_take_number(Cursor *c) {
    uint64_t v = 0;
    bool negative = c->at < c->end && *c->at == '-';

    if (negative)
        c->at++;
    if (c->at == c->end || !stat_is_digit(*c->at))
        cursor_fail(c);
    for (; c->at < c->end && stat_is_digit(*c->at); c->at++)
        v = v * 10 + (uint64_t)(*c->at - '0');
    if (c->at < c->end)
        c->at++;
    return negative ? 0 : v;
}

static void stat_keep_field(ProcessStat *stat, unsigned field, uint64_t v) {
    if (field == FIELD_PPID)
        stat->ppid = (uint32_t)v;
    else if (field == FIELD_FLAGS)
        stat->flags = (uint32_t)v;
    else if (field == FIELD_N_THREADS)
        stat->n_threads = v;
    else if (field == FIELD_START)
        stat->start_ticks = v;
}

int process_stat_parse(Bytes text, ProcessStat *ret) {
    const uint8_t *open = text.size > 0 ? memchr(text.data, '(', text.size) : NULL;
    const uint8_t *close = text.size > 0 ? memrchr(text.data, ')', text.size) : NULL;
    ProcessStat stat = {};
    Cursor c;

    if (!open || !close || close < open)
        return -EBADMSG;
    process_comm_copy(stat.comm, (Bytes){.data = open + 1, .size = (size_t)(close - open - 1)});
    c = cursor_of(close + 1, (size_t)(text.data + text.size - close - 1), false);
    (void)cursor_u8(&c);
    stat.state = (char)cursor_u8(&c);
    (void)cursor_u8(&c);
    for (unsigned field = FIELD_STATE + 1; field <= FIELD_START; field++)
        stat_keep_field(&stat, field, stat_take_number(&c));
    if (c.failed)
        return -EBADMSG;
    *ret = stat;
    return 0;
}

bool process_id_parse(const char *name, uint32_t *ret) {
    uint64_t v = 0;

    if (*name < '1' || *name > '9')
        return false;
    for (; *name; name++) {
        if (!stat_is_digit((uint8_t)*name))
            return false;
        v = v * 10 + (uint64_t)(*name - '0');
        if (v > INT_MAX)
            return false;
    }
    *ret = (uint32_t)v;
    return true;
}

int process_status_inner_pid(const char *text, uint32_t *ret) {
    static const char field[] = "\nNSpid:";
    const char *at = strstr(text, field);
    uint32_t pid = 0;

    if (!at)
        return -EBADMSG;
    for (at += strlen(field); *at == '\t';) {
        char number[16];
        size_t n = strspn(++at, "0123456789");

        if (n == 0 || n >= sizeof(number))
            return -EBADMSG;
        memcpy(number, at, n);
        number[n] = '\0';
        if (!process_id_parse(number, &pid))
            return -EBADMSG;
        at += n;
    }
    *ret = pid;
    return pid > 0 ? 0 : -EBADMSG;
}

int process_status_user(const char *text, uid_t *ret) {
    static const char field[] = "\nUid:\t";
    const char *at = strstr(text, field);
    unsigned uid;

    if (!at || sscanf(at + strlen(field), "%u", &uid) != 1)
        return -EBADMSG;
    *ret = uid;
    return 0;
}
