/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "capture/event/event-parse.h"
#include "perfdata/event/format.h"

/*
 * The letters behind an event or a group. The first letter that names a privilege level excludes
 * the others, so `u` alone excludes the kernel, and `uk` does not. The letters of a group follow
 * those of each member. Guests are excluded unless a letter includes them; perf record includes
 * them again with some other letters, and so does this file, because recordings are compared.
 */

enum {
    EXCLUDE_MODES = PD_ATTR_EXCLUDE_USER | PD_ATTR_EXCLUDE_KERNEL | PD_ATTR_EXCLUDE_HV,
    PRECISE_MAX = 3,
};

static const char letters[] = "ukhHGpPSDIWeb";

/* Letters that name one kind of thing: the first of them excludes all the others. */
static void event_modifier_leave_in(EventSpec *s, bool *spoken, uint64_t all, uint64_t mode) {
    if (!*spoken)
        s->flags |= all;
    *spoken = true;
    s->flags &= ~mode;
}

static void event_modifier_apply(EventSpec *s, const char *at, size_t n, bool add) {
    bool mode_is_set = add && (s->flags & EXCLUDE_MODES);

    if (!add) {
        s->flags = 0;
        s->precise = 0;
    }
    for (size_t i = 0; i < n; i++) {
        switch (at[i]) {
        case 'u':
            if (!s->guest_is_set)
                s->flags |= PD_ATTR_EXCLUDE_GUEST;
            event_modifier_leave_in(s, &mode_is_set, EXCLUDE_MODES, PD_ATTR_EXCLUDE_USER);
            break;
        case 'k':
            event_modifier_leave_in(s, &mode_is_set, EXCLUDE_MODES, PD_ATTR_EXCLUDE_KERNEL);
            break;
        case 'h':
            event_modifier_leave_in(s, &mode_is_set, EXCLUDE_MODES, PD_ATTR_EXCLUDE_HV);
            break;
        case 'G':
            event_modifier_leave_in(s, &s->guest_is_set,
                                    PD_ATTR_EXCLUDE_GUEST | PD_ATTR_EXCLUDE_HOST,
                                    PD_ATTR_EXCLUDE_GUEST);
            break;
        case 'H':
            event_modifier_leave_in(s, &s->guest_is_set,
                                    PD_ATTR_EXCLUDE_GUEST | PD_ATTR_EXCLUDE_HOST,
                                    PD_ATTR_EXCLUDE_HOST);
            break;
        case 'p':
            s->precise++;
            if (!s->guest_is_set)
                s->flags |= PD_ATTR_EXCLUDE_GUEST;
            break;
        case 'P':
            s->precise_is_most = true;
            break;
        case 'S':
            s->sample_read = true;
            break;
        case 'D':
            s->flags |= PD_ATTR_PINNED;
            break;
        case 'e':
            s->flags |= PD_ATTR_EXCLUSIVE;
            break;
        case 'I':
            s->flags |= PD_ATTR_EXCLUDE_IDLE;
            break;
        case 'W':
            s->weak = true;
            break;
        }
    }
}

static int event_modifier_check(EventParser *p, const char *at, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (at[i] == 'b')
            return event_fail(p, -EINVAL,
                              "has the modifier 'b', but counting by BPF takes no samples");
        if (at[i] != 'p' && memchr(at + i + 1, at[i], n - i - 1))
            return event_fail(p, -EINVAL, "has the modifier '%c' twice", at[i]);
    }
    return 0;
}

int event_modifiers(EventParser *p, size_t first, bool add) {
    size_t n = strspn(p->at, letters);
    int r = event_modifier_check(p, p->at, n);

    if (r < 0)
        return r;
    if (p->at[n] != '\0' && p->at[n] != ',' && p->at[n] != '}')
        return event_fail(p, -EINVAL,
                          "has an unknown modifier at offset %zu, where u, k, h, G, H, p, P, S, D, "
                          "I, W or e is expected",
                          (size_t)(p->at + n - p->text));
    for (size_t i = first; i < p->list->n && n > 0; i++) {
        EventSpec *s = &p->list->specs[i];
        uint64_t before = s->flags;

        event_modifier_apply(s, p->at, n, add);
        if (s->precise > PRECISE_MAX)
            return event_fail(p, -EINVAL, "has the modifier 'p' more than three times");
        /* Only the leader of a group can be pinned or exclusive. */
        if (s->leader != i)
            s->flags = (s->flags & ~(PD_ATTR_PINNED | PD_ATTR_EXCLUSIVE)) |
                       (before & (PD_ATTR_PINNED | PD_ATTR_EXCLUSIVE));
    }
    p->at += n;
    return 0;
}
