/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "interval/series-label.h"

#include <errno.h>
#include <string.h>

#include "util/buffer.h"
#include "util/cgroup-owner.h"
#include "util/text.h"

/*
 * Makes labels of what a profile keeps apart. The path of a control group is the only source for
 * its owner, so samples of services that are gone have their labels, too.
 */

enum { CONTAINER_ID_MIN = 12 };

static Bytes series_label_text(const char *text) {
    return (Bytes){.data = (const uint8_t *)text, .size = text ? strlen(text) : 0};
}

/* A text of the profile; empty: the key is not known. */
static Bytes series_label_value(const Profile *profile, const ProfileLabel *label, ProfileKey key) {
    uint32_t number = label->values[key];

    return number < text_set_count(profile->texts) ? text_set_get(profile->texts, number)
                                                   : (Bytes){};
}

Bytes series_label_event(const Profile *profile, const ProfileLabel *label) {
    uint32_t event = label->values[PROFILE_EVENT];

    return event < profile->n_events ? text_set_get(profile->texts, profile->events[event].name)
                                     : (Bytes){};
}

/* At most LABEL_VALUE_MAX bytes, and no part of a character of UTF-8. */
static Bytes series_label_cut(Bytes text) {
    size_t n = LABEL_VALUE_MAX;

    if (text.size <= n)
        return text;
    while (n > 0 && (text.data[n] & 0xc0) == 0x80)
        n--;
    return (Bytes){.data = text.data, .size = n};
}

int series_label_put(LabelSet *set, const char *name, Bytes value) {
    _cleanup_(buffer_done) Buffer text = {};
    int r;

    /* The escape makes a text longer. */
    text_escape_again(&text, series_label_cut(value));
    text.size = series_label_cut(buffer_bytes(&text)).size;
    text_putc(&text, '\0');
    if (buffer_error(&text))
        return -ENOMEM;
    r = label_set_put(set, name, (const char *)text.data);
    return r == -ENOMEM ? r : 0;
}

/* "web@3.service" is "web". */
static Bytes series_label_service(Bytes unit) {
    static const char scope[] = ".scope";
    size_t n = unit.size, suffix = sizeof(scope) - 1;
    const uint8_t *at;

    if (n > suffix && memcmp(unit.data + n - suffix, scope, suffix) == 0 &&
        !bytes_equal_str(unit, "init.scope"))
        return (Bytes){};
    while (n > 0 && unit.data[n - 1] != '.')
        n--;
    unit.size = n > 1 ? n - 1 : unit.size;
    at = unit.size > 0 ? memchr(unit.data, '@', unit.size) : NULL;
    if (at && at > unit.data)
        unit.size = (size_t)(at - unit.data);
    return unit;
}

/* Ids are digits, names of machines rarely are. */
static bool series_label_is_id(const char *container) {
    size_t n = strlen(container);

    return n >= CONTAINER_ID_MIN && strspn(container, "0123456789abcdef") == n;
}

static int series_label_put_service(LabelSet *set, const CgroupOwner *owner, const IntervalPod *pod,
                                    Bytes comm) {
    Bytes name = {};

    if (pod && *pod->container)
        name = series_label_text(pod->container);
    else if (owner->container[0] && !series_label_is_id(owner->container))
        name = series_label_text(owner->container);
    else if (!owner->container[0] && !owner->pod[0])
        name = series_label_service(owner->user_unit.size > 0 ? owner->user_unit : owner->unit);
    if (name.size == 0)
        name = comm.size > 0 ? comm : series_label_text("unknown");
    return series_label_put(set, SERIES_LABEL_SERVICE, name);
}

int series_label_make(const Interval *interval, const char *host, const ProfileLabel *label,
                      LabelSet *ret) {
    const Profile *profile = interval->profile;
    Bytes path = series_label_value(profile, label, PROFILE_CGROUP);
    Bytes comm = series_label_value(profile, label, PROFILE_COMM);
    const IntervalPod *pod = interval_pod(interval, label->values[PROFILE_CGROUP]);
    CgroupOwner owner;
    int r = 0;

    cgroup_owner_find(path, &owner);
    const struct {
        const char *name;
        Bytes value;
    } labels[] = {
        {LABEL_HOST, series_label_text(host)},
        {"unit", owner.unit},
        {"user_unit", owner.user_unit},
        {"slice", owner.slice},
        {"cgroup", owner.unit.size == 0 && !owner.container[0] ? path : (Bytes){}},
        {"container", series_label_text(owner.container)},
        {"runtime", series_label_text(owner.runtime)},
        {"pod", series_label_text(owner.pod)},
        {"namespace", series_label_text(pod ? pod->namespace : NULL)},
        {"pod_name", series_label_text(pod ? pod->pod : NULL)},
        {"container_name", series_label_text(pod ? pod->container : NULL)},
        {"comm", comm},
        {SERIES_LABEL_EVENT, series_label_event(profile, label)},
    };

    for (size_t i = 0; i < ARRAY_SIZE(labels) && r == 0; i++)
        if (labels[i].value.size > 0)
            r = series_label_put(ret, labels[i].name, labels[i].value);
    return r < 0 ? r : series_label_put_service(ret, &owner, pod, comm);
}
